# What a source holds cannot steer the terminal, long lines are cut, and the caret stands right.
show() { "$KILN" check t.kiln "$@" 2>&1 | cut -c1-140; }
printf 'kernel k(f32 y[4]) grid(1) { y[0:4] = q; } // \033[31m\a \177 \303\251 \351 \302\233 x\n' >t.kiln
show
printf 'kernel k(f32 y[4]) grid(1) { /* \303\251\342\202\254 \033\377\t*/ y[0:4] = q; }\n' >t.kiln
show
"$KILN" check t.kiln --format json | grep -c '"source".*y\[0:4\] = q'
long=$(printf '%300s' '' | tr ' ' z)
printf 'kernel k(f32 y[4]) grid(1) { y[0:4] = q; /* %s */ }\n' $long >t.kiln
show
printf 'kernel k(f32 y[4]) grid(1) { /* %s */ y[0:4] = q; /* %s */ }\n' $long $long >t.kiln
show
printf 'kernel k(f32 y[4]) grid(1) { /* %s */ y[0:4] = q; }\n' $long >t.kiln
show
printf 'kernel k(f32 y[4]) grid(1) { y[0:4] = q%s; }\n' $long >t.kiln
show
printf 'kernel k(f32 y[4]) grid(1) { y[0:4] = q; }\n' >t.kiln
cp t.kiln "$(printf 'a\033[2Jb.kiln')"
"$KILN" check "$(printf 'a\033[2Jb.kiln')" 2>&1; echo "rc $?"
