# `kiln tune` where something goes wrong: no candidate, far too many, a compiler that dies, a kernel that
# does not end, a file that is damaged, of another version, or written by two at once.
test -x /usr/bin/cc || { echo "no C compiler" >&2; exit 77; }
"$KILN" doctor >doc || { echo "kernels cannot be compiled here" >&2; exit 77; }
cat >k.kiln <<'K'
kernel grow(i64 n, f32 x[n], constexpr i64 B = 256) grid(cdiv(n, B))
    tune(B: 128, 256)
{
    i64 i = program_id(0) * B;
    x[i:B] = 2 * x[i:B] + 1;
}
kernel none(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 256) grid(cdiv(n, B))
    requires(B == 256, "B is 256")
    tune(B: 1, 2, 4)
{
    i64 i = program_id(0) * B;
    y[i:B] = x[i:B];
}
kernel spin(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 256, constexpr i64 N = 0)
    grid(cdiv(n, B))
    tune(N: 0, 1)
{
    i64 i = program_id(0) * B, v = 0, stop = n > 1000 ? N : 0;
    while (v != stop)                                       // one more than an even number: never
        v = (v + 2) % 1000000;
    y[i:B] = x[i:B] + v;
}
kernel loop(i64 n, f32 y[n], const f32 x[n], constexpr i64 B = 256, constexpr i64 N = 1)
    grid(cdiv(n, B))
    tune(N: 1, 77773)
{
    i64 i = program_id(0) * B;
    f32 s[B] = 0;
    for (i64 k = 0; k < N; k++)
        s = max(s, x[i:B] + 0 * (f32)k);
    y[i:B] = s;
}
K
hide() {
    sed -E "s,$PWD/,,g" | sed -E 's/cpu x86-64-v[0-9]/cpu LEVEL/; s/pruned in [^;]*; ([0-9]+) compiled and checked in .*/pruned, \1 compiled/
        s/in [0-9]+ rounds?, .*/in # rounds/; /^  (default|tuned) /d; /^kiln: tuned constants/d
        s/source [0-9a-f]{16}/source HASH/; s/ms     [0-9.e-]+ default [0-9.e-]+/ms     # default #/; s/(use    ).*/\1.../'
}
t() { "$KILN" tune "$@" --device cpu 2>&1; echo "rc $?"; }
few="--budget 0.05"
echo "== none of them can be"
t k.kiln:none x=1000:f32 $few | hide
t k.kiln:none x=1000:f32 $few -D B=1,2 -o none.tune | hide
echo "== hundreds; thousands"
t k.kiln:grow x=100000:f32 --dry-run -D B=1:500:+1 | hide
t k.kiln:grow x=100000:f32 --dry-run -D B=1:5000:+1 | hide
echo "== a compiler that dies of one of them"
cat >cc <<C
#!/bin/sh
case " \$* " in *" - "*) ;; *) exec /usr/bin/cc "\$@" ;; esac
cat >in.\$\$
if grep -q 77773 in.\$\$; then kill -s SEGV \$\$; fi
exec /usr/bin/cc "\$@" <in.\$\$
C
chmod +x cc
KILN_CC=$PWD/cc KILN_CACHE_DIR=$PWD/c1 t k.kiln:loop x=1000:f32 $few -v -o died.tune | hide | sed -E 's/^( +)[0-9.]+ (ns|us|ms).*/\1#/; s/(default\)|N=[0-9]*)( +)[0-9.]+ (ns|us|ms|s) .*/\1\2#/'
rm -f in.*
echo "== one that does not end: what came before is kept"
t k.kiln:spin 'x={n}:f32' --sweep n=500,2000 $few --limit 0.5 | hide
hide <k.kiln.tune
rm k.kiln.tune
echo "== a file that is wrong is not touched, and nothing is measured"
for f in 'kiln-tune 2' 'kiln-tune 1\nkernel grow\n use B 128' '\001\002'; do
    printf "$f" >bad.tune
    cp bad.tune old.tune
    t k.kiln:grow x=1000:f32 $few -o bad.tune | hide
    cmp bad.tune old.tune
done
t k.kiln:grow x=1000:f32 $few -o nowhere/x.tune | hide
echo "== damaged while it measures: what was found is printed"
cat >cc <<C
#!/bin/sh
case " \$* " in *" - "*) ;; *) exec /usr/bin/cc "\$@" ;; esac
cat >in.\$\$
if grep -q 77773 in.\$\$; then echo junk >$PWD/late.tune; fi
exec /usr/bin/cc "\$@" <in.\$\$
C
KILN_CC=$PWD/cc KILN_CACHE_DIR=$PWD/c2 t k.kiln:loop x=1000:f32 $few -o late.tune | hide
cat late.tune
echo "== two at once"
t k.kiln:grow 'x={n}:f32' --sweep n=1000,3000,5000 $few -o both.tune >one.log &
t k.kiln:spin 'x={n}:f32' --sweep n=100,300,500 $few -o both.tune >two.log &
wait
grep -hc 'entries written' one.log two.log
grep -cE '^kernel (grow|spin)' both.tune
grep -E '^kernel|when' both.tune
echo "== the kernel changes"
t k.kiln:grow x=1000:f32 $few | tail -1
sed -i 's/use .*/use B=128/' k.kiln.tune
r() { "$KILN" run k.kiln:grow 'x=zeros(1000,f32)' --device interp 2>&1 | sed 's/ *mean.*//'; }
sed -i 's/device cpu.*/device interp/' k.kiln.tune
r
sed -i 's/2 \* x/3 * x/' k.kiln
r
sed -i 's/device interp/device sim/' k.kiln.tune # of another device it is nobody's concern
r
