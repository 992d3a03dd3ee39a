# Colour: never in a pipe unless asked for.
printf 'kernel k(f32 x[4]) grid(1) { x[0:4] = y; }\n' >bad.kiln
esc() { grep -c "$(printf '\033')" ; }
"$KILN" run bad.kiln 2>&1 | esc
"$KILN" run bad.kiln --color never 2>&1 | esc
"$KILN" run bad.kiln --color=always 2>&1 | esc
NO_COLOR=1 "$KILN" run bad.kiln --color always 2>&1 | esc
