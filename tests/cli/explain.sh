# kiln explain: values by shape, GPUs, ptxas, formats, several kernels, what is wrong.
# Registers come from a stand-in for ptxas, so that they are the same everywhere.
cat >k.kiln <<'K'
kernel scale(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 4096) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
kernel rows(i64 m, i64 n, i64 p = n, f32 y[m], const f32 x[m][n] stride(p, 1),
            constexpr i64 B = pow2ceil(n)) grid(m)
{
    i64 r = program_id(0);
    y[r] = sum(x[r][0:B]);
}
K
tool() { # tool NAME REGISTERS SPILLS
    cat >"$1" <<P
#!/bin/sh
for a; do case \$a in *.ptx) name=\$(sed -n 's/^.visible .entry \([a-z_0-9]*\).*/\1/p' "\$a") ;; esac; done
echo "ptxas info    : 0 bytes gmem"
echo "ptxas info    : Compiling entry function 'other' for 'sm_90'"
echo "ptxas info    : Used 7 registers, used 1 barriers"
echo "ptxas info    : Compiling entry function '\$name' for 'sm_90'"
echo "ptxas info    : Function properties for \$name"
echo "    0 bytes stack frame, $3 bytes spill stores, $3 bytes spill loads"
echo "ptxas info    : Used $2 registers, used 1 barriers, 400 bytes cmem[0]"
P
    chmod +x "$1"
}
tool r40 40 0
printf '#!/bin/sh\necho "kernel.ptx, line 1; fatal: no"\nexit 255\n' >broken
chmod +x broken
k() { echo "\$ kiln explain $*" | sed "s,$PWD/,,g"; "$KILN" explain "$@" 2>&1 | sed "s,$PWD/,,g"; }
n() { k "$@" --registers none; }
n k.kiln:scale x=1000000:f32 --gpu H200
k k.kiln:scale x=1000000:bf16 --gpu a100 --registers $PWD/r40
k k.kiln:scale x=1000000:f32 --registers $PWD/broken
n k.kiln:scale x=1000000:f32 --arch sm_86
n k.kiln:scale x=1000000:f32 --format md --gpu L40S
n k.kiln:rows x=100x512:f32:strides=600x1:offset=2 --gpu RTX4090
echo '$ values of kiln run, shapes, constants'
n k.kiln:scale 'x=zeros(1000000,f32)' >a
n k.kiln:scale x=1000000 n=1000000 -D T=f32 -D B=4096 >b
sed 1d a >a1 && sed 1d b >b1 && cmp a1 b1 && echo same
echo '$ two runs, a file'
n k.kiln:scale x=1000000:f32 -o out.txt
sed 1d a >a1 && cmp a1 out.txt && echo same
echo '$ all kernels with these values'
n k.kiln x=64x512:f32 | grep -v '^ '
n k.kiln x=64x512:f32 n=3
n k.kiln q=3
cat >card.txt <<'C'
# a small card
name = Card
cc = 8.6
sms = 10
clock = 1500
memory = 300
C
n k.kiln:scale x=1000000:f32 --gpu card.txt | grep -E 'sm_|gpu|floor|waves'
sed -i 's,^sms.*,sms = ten,' card.txt
n k.kiln:scale x=1000000:f32 --gpu card.txt
n k.kiln:scale x=1000000:f32 --gpu H20O
n k.kiln:scale x=1000000:f32 --gpu H200 --arch sm_100
n k.kiln:scale x=1000000:f32 --gpu A100 --arch sm_80 | head -2
n k.kiln:scale x=10x:f32
# a sample is named under `unknown`; where nothing runs, nothing moves
n k.kiln:scale x=1099511627776:f32 | grep -E '^  (traffic|unknown)'
echo 'kernel none(i64 n, f32 y[n], const f32 x[n]) grid(0) { y[0] = x[0]; }' >none0.kiln
n none0.kiln x=64:f32 | grep -E '^  (traffic|floor)'
n k.kiln:scale x=10:f33
n k.kiln:scale x=10:strides=1x2
n k.kiln:scale x=10:strides=-1
n k.kiln:scale x=10:offset=2000000
n k.kiln:scale x=-10
n k.kiln:scale x=10x
n k.kiln:rows x=10x20
n k.kiln:scale x=10:f32 --format html
n k.kiln:scale x=10:f32 --measure gpu
k k.kiln:scale x=10:f32 --registers some
k k.kiln:scale x=10:f32 --registers /none/ptxas
n k.kiln:scale x=10:f32 -o /none/x
n none.kiln
mkdir none && : >none/libcuda.so.1 # so that a real driver is not found
echo '$ no device here'
LD_LIBRARY_PATH=none "$KILN" explain k.kiln:scale x=10:f32 --gpu here >o 2>&1
echo "rc $?" && cut -c1-38 o
fake=$(dirname "$KILN")/tests/fakecuda
[ -e "$fake/libcuda.so.1" ] || { echo "no fake driver is built" >&2; exit 77; }
echo '$ a device, which says what it is and how many registers there are'
here() { LD_LIBRARY_PATH=$fake "$KILN" explain k.kiln:scale x=1000000:f32 --registers driver "$@" | sed -n 's/[0-9]* (driver)/N (driver)/; /^  gpu/p; /^  registers/p'; }
here --gpu here
here --gpu H200
here --gpu A100
