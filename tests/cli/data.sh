# kiln data gen, show, cmp.
d() { "$KILN" data "$@"; echo "rc $?"; }
echo "== gen"
d gen x.npy 'range(4x10,f32)'
d gen w.safetensors 'layer.0.w=randn(3x4,f16,7)' 'b={1, -2, 3}:i64' n='full(2,f64,nan)' e='zeros(0x3,bf16)'
d gen y.npy w.safetensors:layer.0.w
d gen s.safetensors x=x.npy
echo "== show"
d show x.npy
d show w.safetensors
d show w.safetensors:b w.safetensors:n w.safetensors:e
d gen special.npy '{{1, inf, -inf}, {nan, 2, -0.0}}:f32'
d show special.npy
d gen cube.npy 'range(2x3x9,i32)'
d show cube.npy
d gen scalar.safetensors 's={7}:i32'
d show scalar.safetensors:s
printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }" >f.npy
tail -c 24 x.npy >>f.npy
d show f.npy
d show y.npy:f32
echo "== cmp"
d cmp x.npy x.npy
d cmp x.npy s.safetensors
d gen x2.npy '{1, 2, 3, 4, 5, 6, 7, 8}:f32'
d gen x3.npy '{1, 2.0000002, 3, 4.5, nan, 6, 7, inf}:f32'
d cmp x2.npy x3.npy
d cmp x2.npy x3.npy --tol 1e-5
d gen x4.npy '{1, 2.0000002, 3, 4, 5, 6, 7, 8}:f32'
d cmp x2.npy x4.npy
d cmp x2.npy x4.npy --tol 1ulp
d cmp x2.npy x4.npy --tol 0
d gen x5.npy '{1, 2, 3, 4, 5, 6, 7, 8}:f64'
d cmp x2.npy x5.npy
d cmp x2.npy x5.npy --tol 0
d cmp x2.npy x.npy
d gen w2.safetensors 'b={1, -2, 4}:i64' n='full(2,f64,nan)' other='zeros(1,f32)' e='zeros(0x3,bf16)'
d cmp w.safetensors w2.safetensors
d cmp w.safetensors w.safetensors
echo "== wrong use"
d 2>&1
d look x.npy 2>&1
d gen x.npy 2>&1
d gen x.npy 'zeros(3)' 2>&1
d gen x.npy 'zeros(3,f32)' 'zeros(3,f32)' 2>&1
d gen w.safetensors 'zeros(3,f32)' 2>&1
d gen w.safetensors 'a=zeros(3,f32)' 'a=zeros(3,f32)' 2>&1
d gen w.safetensors:t 'a=zeros(3,f32)' 2>&1
"$KILN" data gen big.npy 'zeros(99999999999x9999,f32)' 2>&1 | sed 's/;.*//'
d gen no/such/dir.npy 'zeros(3,f32)' 2>&1
d show none.npy 2>&1
d show none.safetensors 2>&1
d cmp x.npy 2>&1
d cmp x.npy none.npy 2>&1
d cmp x.npy x.npy --tol much 2>&1
# w.safetensors was not touched by what failed
d show w.safetensors
