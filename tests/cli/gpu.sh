# Devices cuda and sim on the command line; the driver is the one of tests/fakecuda.
fake=$(dirname "$KILN")/tests/fakecuda
[ -e "$fake/libcuda.so.1" ] || { echo "no fake driver is built" >&2; exit 77; }
gpu() { LD_LIBRARY_PATH=$fake "$KILN" "$@"; }
k=$SRC/kernels
echo "== doctor"
gpu doctor | grep ^gpu
FAKECUDA_DEVICES=2 gpu doctor | grep -c ^gpu
echo "== run"
for d in interp sim cuda cuda:0; do
    gpu run $k/add.kiln:add 'x={1, 2, 3}:f32' 'y={10, 20, 30}:f32' --device $d --no-cache
done
gpu run $k/saxpy.kiln:saxpy a=2 'x={1, 2, 3}:f32' 'y={10, 20, 30}:f32' --device cuda --time |
    sed -n 's/:.*//p' | tail -4
FAKECUDA_DEVICES=2 gpu run $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device cuda:1 --no-cache
gpu run $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device cuda --keep kept >/dev/null
gpu run $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device sim --keep kept >/dev/null
ls kept | sed 's/-[0-9a-f]*\.ptx/-KEY.ptx/'
echo "== test"
gpu test $k/add.kiln $k/softmax.kiln --device cuda | tail -1
gpu test $k/add.kiln --device sim --arch sm_80 | tail -1
echo "== check"
gpu check $k/add.kiln:add 'x={1, 2, 3}:f32' 'y={10, 20, 30}:f32' --device sim
echo "== emit"
for a in sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
    gpu emit --stage ptx --arch $a $k/add.kiln:add 'x=zeros(8,f32)' 'y=zeros(8,f32)' |
        grep -E '^\.(version|target)' | tr '\n' ' '
    echo
done
echo "== errors"
bad() { "$@" 2>&1 | sed "s|$fake|FAKE|; s/loaded: .*; it/loaded: REASON; it/"; }
mkdir none; : >none/libcuda.so.1 # so that a real driver is not found
LD_LIBRARY_PATH=none bad "$KILN" run $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device cuda
LD_LIBRARY_PATH=none "$KILN" run $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device cuda 2>/dev/null
echo $?
bad gpu run $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device cuda:7
FAKECUDA_DEVICES=0 bad gpu run $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device cuda
FAKECUDA_DRIVER=11040 bad gpu run $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device cuda --no-cache
FAKECUDA_MEMORY=100 bad gpu run $k/add.kiln:add 'x=ones(64,f32)' 'y=ones(64,f32)' --device cuda
bad gpu run $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device cuda:x
bad gpu check $k/add.kiln:add 'x={1}:f32' 'y={2}:f32' --device cuda
bad gpu emit --stage ptx --arch sm_81 $k/add.kiln:add 'x=zeros(8,f32)' 'y=zeros(8,f32)'
