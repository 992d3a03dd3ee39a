# cssarray.awk - src/cli/report/report.css as a table of strings, without comments and indentation.
BEGIN {
    print "/* made by tools/cssarray.awk */"
    print "#include \"cli/report/report.h\"\n"
    print "const char *const kl_report_css[] = {"
}
/^\/\*/ { comment = 1 }
comment { if (/\*\/$/) comment = 0; next }
{
    sub(/^ +/, "")
    gsub(/\\/, "&&"); gsub(/"/, "\\\"")
    printf "    \"%s\\n\",\n", $0
}
END { print "    0};" }
