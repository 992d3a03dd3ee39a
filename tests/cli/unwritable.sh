# Outputs that cannot be written are found before the kernel runs.
cat >k.kiln <<'K'
kernel fill(i64 n, f32 y[n], const f32 x[n], i64 steps = 1) grid(1)
{
    f32 s = 0;
    for (i64 i = 0; i < steps; i++)
        s += 1;
    y[0] = s + x[0];
}
K
mkdir dir ro
k() { echo "-o $1"; timeout 20 "$KILN" run k.kiln --device interp 'x=zeros(1)' steps=100000000000 -o "$1" 2>&1
      echo "rc $?"; }
k y=nowhere/y.npy
k y=dir
k y=dir/
k y=
k y=k.kiln/y.npy
k y=/proc/kiln.npy
k x=y.npy
k n=y.npy
k w=y.npy
for o in '--save nowhere/b.json' '-o dir' '-o b.txt --save nowhere/b.json'; do
    timeout 20 "$KILN" bench k.kiln --device interp x=1:f32 steps=100000000000 $o 2>&1
    echo "bench $o: rc $?"
done
ls -A | grep -v "^[.]\(out\|err\)$"
# a device that is always full: status 3, and the device stays
"$KILN" run k.kiln --device interp 'x=zeros(1)' -o y=/dev/full 2>&1; echo "rc $?"
"$KILN" --help >/dev/full; echo "rc $?"
