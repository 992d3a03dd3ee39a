# ctext.awk - texts as tables of strings, one a line: FILE.inc without its head comment, which ends at
# the first empty line; of a header what stands between its #include and its last #endif.  The table of
# PATH/NAME.x is kl_text_NAME.
BEGIN { print "/* made by tools/ctext.awk */" }
FNR == 1 {
    if (NR > 1)
        print "    0};"
    name = FILENAME
    header = name ~ /\.h$/
    sub(/.*\//, "", name); sub(/\.[a-z]*$/, "", name)
    print "extern const char *const kl_text_" name "[];"
    print "const char *const kl_text_" name "[] = {"
    on = begun = 0
}
header && /^#include/ { on = 1; next }
header && /^#endif/ { next }
!header && !on && /^$/ { on = 1; next }
!on || (header && /^$/ && !begun) { next }
{
    begun = 1
    gsub(/\\/, "&&"); gsub(/"/, "\\\"")
    printf "    \"%s\\n\",\n", $0
}
END { print "    0};" }
