# A signal while the C compiler runs ends it, too, with what it has started.
test -x /usr/bin/cc || { echo "no C compiler" >&2; exit 77; }
"$KILN" doctor >doc || { echo "kernels cannot be compiled here" >&2; exit 77; }
printf 'kernel k(f32 y[4]) grid(1) { y[0:4] = 1; }\n' >k.kiln
# a zombie that nobody has waited for yet has ended as well
alive() { test -d /proc/$1 && ! grep -q '^State:.Z' /proc/$1/status 2>/dev/null; }
for sig in INT TERM HUP; do
    cat >cc <<C
#!/bin/sh
case " \$* " in *" - "*) ;; *) exec /usr/bin/cc "\$@" ;; esac
sleep 60 &
echo \$\$ \$! >$PWD/pids
kill -s $sig \$PPID
wait
C
    chmod +x cc
    { timeout 60 "$KILN" run k.kiln --device cpu --no-cache --cc "$PWD/cc" 2>err; } 2>/dev/null
    echo "$sig: rc $?"
    for i in 1 2 3 4 5 6 7 8 9 10; do
        left=0
        for p in $(cat pids); do ! alive $p || left=$((left + 1)); done
        [ $left != 0 ] || break
        sleep 0.1
    done
    echo "$left left"
    [ $left = 0 ] || kill -s KILL $(cat pids)
    rm pids
done
