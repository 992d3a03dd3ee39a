# embed.awk - the files given as a C table of strings: src/lang/include/*.kiln and kernels/*.kiln
# in the library, the latter without their test cases.  -v FN=NAME: the functions are called so
# (kl_embedded).
BEGIN {
    if (FN == "") FN = "kl_embedded"
    print "/* made by tools/embed.awk */"
    print "#include \"lang/ast.h\"\n"
    print "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
    print "static const struct { const char *name, *text; } table[] = {"
}
FNR == 1 {
    if (NR > 1) print "    },"
    name = FILENAME
    if (!sub(/^.*src\/lang\/include\//, "", name)) sub(/^(.*\/)?kernels\//, "kernels/", name)
    printf "    {\"%s\",\n", name
}
/^\/\/!/ { next }
{
    gsub(/\\/, "&&"); gsub(/"/, "\\\"")
    printf "     \"%s\\n\"\n", $0
}
END {
    if (NR) print "    },"
    print "    {0, 0}};\n"
    print "const char *" FN "(const char *name, uint32_t *len)\n{"
    print "    for (uint32_t i = 0; table[i].name; i++)"
    print "        if (strcmp(table[i].name, name) == 0) {"
    print "            *len = (uint32_t)strlen(table[i].text);"
    print "            return table[i].text;"
    print "        }"
    print "    return NULL;\n}\n"
    print "const char *" FN "_name(uint32_t i)\n{"
    print "    return i + (size_t)1 < sizeof table / sizeof *table ? table[i].name : NULL;\n}"
}
