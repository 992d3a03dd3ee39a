# A failing C compiler: the file that the command speaks of is not there, so it says how to get it.
test -x /usr/bin/cc || { echo "no C compiler" >&2; exit 77; }
"$KILN" doctor >doc || { echo "kernels cannot be compiled here" >&2; exit 77; }
printf 'kernel k(f32 y[4]) grid(1) { y[0:4] = 1; }\n' >k.kiln
cat >cc <<'C'
#!/bin/sh
case " $* " in *" - "*) ;; *) exec /usr/bin/cc "$@" ;; esac
echo broken >&2
exit 1
C
chmod +x cc
k() { "$KILN" run k.kiln --no-cache --cc "$PWD/cc" "$@" 2>&1 >/dev/null | sed "s|$PWD/||g"; }
k | grep -o 'K180.\|FILE.c was .*'
k --device cpu | grep -o 'K180.\|FILE.c was .*'
k --device cpu --keep kept | grep -o 'K180.\|FILE.c\|kept/.*[.]c'| sed 's|/.*[.]c|/NAME.c|'
ls kept | sed 's/.*\././'
