# A signal ends the run and leaves no file behind.
cat >k.kiln <<'K'
kernel slow(i64 n, f32 y[n], const f32 x[n], i64 steps = 1) grid(1)
{
    f32 s = 0;
    for (i64 i = 0; i < steps; i++)
        s += 1;
    y[0] = s + x[0];
}
K
for sig in INT TERM HUP KILL; do
    mkdir out
    { timeout --preserve-status -s $sig 0.5 \
        "$KILN" run k.kiln --device interp 'x=zeros(1)' steps=100000000000 -o y=out/y.npy; } 2>err
    echo "$sig: rc $?"
    ls -A out
    grep -v '^Killed' err # what the shell says of a process that was killed
    rmdir out
done
# nor the programs that a benchmark asks, and what these were to read
cat >peer <<'P'
#!/bin/sh
echo $$ >pid
read -r q
echo '{"name": "sh"}'
read -r q
exec sleep 60
P
chmod +x peer
mkdir tmp
TMPDIR=$PWD/tmp timeout --preserve-status -s INT 1 \
    "$KILN" bench k.kiln --device interp x=1:f32 --samples 3 --peer ./peer >/dev/null 2>&1
echo "peer: rc $?"
ls -A tmp
sleep 0.2
[ -s pid ] || echo "no peer was started"
grep '^State' "/proc/$(cat pid)/status" 2>/dev/null | grep -v zombie # init may not have seen its end
:
