#!/bin/sh
# man.sh FOLDER - manual pages into FOLDER, by scdoc: kiln.1, kiln-COMMAND.1, kiln.3, kiln-tune.5, kiln.7.
# Run in the source folder; KILN is the command.
#
# Pages of commands: what `kiln help --man COMMAND` says from the option table; the first section
# of docs/man/kiln-COMMAND.1.scd stands in place of its DESCRIPTION, the others behind OPTIONS.
# kiln(1) gets the list of commands, kiln(3) the declarations of the headers.
# `man.sh --list` prints the names of the pages.
set -u
commands() { sed -n 's|^CMD(\([a-z]*\),.*|\1|p' src/cli/cli.def; }
if [ "${1:-}" = --list ]; then
    echo kiln.1
    for c in $(commands); do echo "kiln-$c.1"; done
    printf '%s\n' kiln.3 kiln-tune.5 kiln.7
    exit 0
fi
out=${1:?usage: man.sh FOLDER}
KILN=${KILN:-build/kiln}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

page() { # page NAME: scdoc on standard input; a date that does not change from build to build
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1764460800} scdoc >"$tmp/page" || exit 1
    mv "$tmp/page" "$out/$1"
}
# What comes for a line "; @WORD" of a text: the standard output of the function of that name.
COMMANDS() { "$KILN" help --man; }
# The declarations of the headers under the titles of their parts.
DECLARATIONS() {
    awk '
        FNR == 1 { title = FILENAME; sub(/.*\//, "", title) }
        /^\/\* ---- .* ---- \*\/$/ { title = $0; gsub(/^\/\* ---- | ---- \*\/$/, "", title) }
        /^KILN_API/ { decl = 1; text = "" }
        decl {
            line = $0
            sub(/ *\/\*.*$/, "", line)
            sub(/^KILN_API /, "", line)
            sub(/^ +/, "    ", line)
            text = text line "\n"
            if ($0 ~ /;/) {
                if (title != last) { if (last) print "```\n"; print "## " title "\n\n```"; last = title }
                printf "%s", text
                decl = 0
            }
        }
        END { if (last) print "```\n" }' include/kiln.h $(ls include/*.h | grep -v /kiln.h)
}
expand() {
    while IFS= read -r line; do
        case $line in
        "; @"*) "${line#; @}" || exit 1 ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <"$1"
}

for p in kiln.1 kiln.3 kiln-tune.5 kiln.7; do
    expand "docs/man/$p.scd" >"$tmp/text" || exit 1
    page "$p" <"$tmp/text"
done
for c in $(commands); do
    "$KILN" help --man "$c" >"$tmp/table" || exit 1
    text=docs/man/kiln-$c.1.scd
    [ -f "$text" ] || text=/dev/null
    awk '
        FILENAME == ARGV[1] && /^# / { n++ }
        FILENAME == ARGV[1] { part[n > 1] = part[n > 1] $0 "\n"; next }
        /^# / { own = $0 == "# DESCRIPTION" && n > 0; if (own) printf "%s\n", part[0] }
        !own
        END {
            printf "%s\n", part[1]
            print "# SEE ALSO\n\n*kiln*(1), *kiln*(7)"
        }' "$text" "$tmp/table" >"$tmp/text"
    page "kiln-$c.1" <"$tmp/text"
done
