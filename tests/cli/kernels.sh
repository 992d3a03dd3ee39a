# The kernels on files: rows and columns of a Fortran-order array, a sum in two stages.
K=$SRC/kernels

# 2 x 3 in Fortran order: columns (1, 2), (3, 4), (5, 6)
{
    head='{"descr": "<f4", "fortran_order": True, "shape": (2, 3), }'
    head=$(printf '%s' "$head" | tr '"' "'")
    printf '\223NUMPY\001\000\166\000%-117s\n' "$head"
    printf '\000\000\200\077\000\000\000\100\000\000\100\100\000\000\200\100\000\000\240\100\000\000\300\100'
} >x.npy
"$KILN" run "$K/softmax.kiln:softmax_strided" x=x.npy
"$KILN" run "$K/softmax.kiln:softmax" x=x.npy 2>&1 | sed "s|$SRC/||g"

"$KILN" run "$K/rowsum.kiln:rowsum_parts" x='range(2x1000,f32)' parts=3 -D BLOCK=64 -o partial=p.npy
"$KILN" run "$K/rowsum.kiln:rowsum_join" partial=p.npy A=f32
