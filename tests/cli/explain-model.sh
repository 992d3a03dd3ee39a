# kiln explain: what the model says of kernels whose figures are known, and that the executor counts
# the same.
e() { "$KILN" explain "$@" --registers none --no-tune 2>&1 | sed "s,$SRC/,,g"; }
k=$SRC/kernels
echo "== a softmax of 1024 x 1024: 32.016 MiB as five passes, 8 MiB fused"
e $k/softmax.kiln:softmax x=1024x1024:f32 --gpu H200
echo "== a product: each operand is read by a row, or a column, of programs"
e $k/matmul.kiln:matmul a=512x256:f32 b=256x384:f32 | sed -n '/traffic/,/floor/p'
echo "== a transpose without swizzle, beside the executor"
e $k/transpose.kiln:transpose x=128x256:f32 --no-swizzle --measure sim
echo "== the same with it"
e $k/transpose.kiln:transpose x=128x256:f32 --measure sim | grep -E 'the same|NOT|conflicts'
echo "== the executor counts what the model says"
same() { e "$@" --measure sim | awk '/: the same/ { n++ } /NOT THE SAME|not exact/ { print; bad++ } END { print n + 0 " the same, " bad + 0 " not" }'; }
same $k/add.kiln:add x=5000:bf16 y=5000:bf16
same $k/softmax.kiln:softmax x=33x1000:f32
same $k/softmax.kiln:softmax x=33x1000:f32 --arch sm_80
same $k/softmax.kiln:softmax_strided x=9x1001:f32:strides=1003x1:offset=1
same $k/layernorm.kiln:layernorm x=9x1000:bf16 gamma=1000:bf16 beta=1000:bf16
same $k/matmul.kiln:matmul a=100x70:f32 b=70x90:f32
same $k/rowsum.kiln:rowsum x=16x4096:f32
same $k/softmax.kiln:softmax x=2x65536:f32
