# Arrays that memory cannot hold: one message, status 3, nothing half-written.
cat >k.kiln <<'K'
kernel outer(i64 m, i64 n, f32 y[m][n], const f32 x[m], const f32 z[n]) grid(m)
{
    y[program_id(0)][0:1] = x[program_id(0)] + z[0];
}
K
k() { "$KILN" run k.kiln --device interp "$@" -o y=y.npy 2>&1 | sed 's/memory; .* are available/memory; SOME are available/'; }
k 'x=zeros(100000000000000)' 'z=zeros(1)'
k 'x=zeros(4611686018427387904)' 'z=zeros(1)'
k 'x=zeros(9223372036854775808)' 'z=zeros(1)'
k 'x=zeros(10000000)' 'z=zeros(100000000)'
"$KILN" run k.kiln --device interp 'x=zeros(100000000000000)' 'z=zeros(1)' 2>/dev/null; echo "rc $?"
ls -A | grep -v "^[.]\(out\|err\)$"
