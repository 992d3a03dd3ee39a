# ctext.awk - a header as a table of strings: what stands between its #include and its last #endif.
BEGIN {
    print "/* made by tools/ctext.awk */"
    print "extern const char *const kl_place_text[];"
    print "const char *const kl_place_text[] = {"
}
/^#include/ { on = 1; next }
/^#endif/ || !on { next }
/^$/ && !begun { next }
{
    begun = 1
    gsub(/\\/, "\\\\"); gsub(/"/, "\\\"")
    printf "    \"%s\\n\",\n", $0
}
END { print "    0};" }
