# .safetensors in and out: what is written is pinned and reads back, several tensors, every type.
cat >k.kiln <<'K'
kernel two(i64 m, i64 n, type T = f32, T y[m][n], T z[n], const T x[m][n]) grid(m)
{
    i64 i = program_id(0);
    y[i][0:4] = 2 * x[i][0:4];
    if (i == 0)
        z[0:4] = x[0][0:4];
}
K
run() { "$KILN" run k.kiln --device interp "$@"; }
run 'x={{1, 2, 3}, {4, 5, 6}}:f32' -o y=a.safetensors -o z=a.safetensors:layer.0.z
head -c 8 a.safetensors | od -An -tu8
head -c $((8 + $(head -c 8 a.safetensors | od -An -tu8))) a.safetensors | tail -c +9; echo '|'
tail -c 36 a.safetensors | od -An -tf4
# the name of the parameter is looked for first; a file of one tensor needs no name
run x=a.safetensors:y -o y=b.safetensors:x -o z=z.npy
run x=b.safetensors
run x=a.safetensors:layer.0.z; echo "rc $?"
# bf16 stays bf16
run 'x={{1, 2, 3}}:bf16' -o y=h.safetensors
"$KILN" data show h.safetensors
run x=h.safetensors
# the same place twice, and files that are not touched by an error
run x=b.safetensors -o y=c.safetensors:t -o z=c.safetensors:t; echo "rc $?"
run x=b.safetensors -o y=c.npy -o z=c.npy; echo "rc $?"
run x=b.safetensors -o y=c.safetensors:__metadata__; echo "rc $?"
ls c.* 2>/dev/null
# tensors that do not lie on a multiple of their size
printf '\110\0\0\0\0\0\0\0%-72s' '{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"F32",' >odd.bin
h='{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"F32","shape":[1,2],"data_offsets":[1,9]}}'
{ printf "\\$(printf %03o ${#h})\\0\\0\\0\\0\\0\\0\\0%s" "$h"; printf '\7\0\0\200\077\0\0\0\100'; } >odd.safetensors
run x=odd.safetensors
# --verify against a tensor
run x=b.safetensors --verify y=a.safetensors:y; echo "rc $?"
