# bench/gpu/tune.sh: its table, its files, and that its cases are of kernels that have something to tune.
fake=$(dirname "$KILN")/tests/fakecuda
[ -e "$fake/libcuda.so.1" ] || { echo "no fake driver is built" >&2; exit 77; }
unset CUDA_VISIBLE_DEVICES
out=$PWD/out
cat >cases <<'C'
# a remark
add/small f32,bf16 n kernels/add.kiln:add x=5000:{T} y=5000:{T}
gone      f32      - kernels/add.kiln:gone x=5000:{T}
left      f32      - kernels/add.kiln:add x=5000:{T} y=5000:{T}
C
cd "$SRC" || exit 1
ONLY="add/small gone" KEPT=$out.none CASES=$out/../cases KILN=$KILN BUDGET=0.05 LD_LIBRARY_PATH=$fake FAKECUDA_NAME="NVIDIA H200" \
    sh bench/gpu/tune.sh "$out" | sed -E "s,$out,OUT,; s/([0-9])[*]? +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+  1/\1 # # # #  1/; s/^[0-9]+ s;/# s;/"
(cd "$out" && find . -type f | LC_ALL=C sort)
sed -E '/source/d; s/(ms    ).*/\1.../' "$out/kernels/add.kiln.tune"
echo "== no time"
CASES=$out/../cases KILN=$KILN SECONDS_LEFT=1 LD_LIBRARY_PATH=$fake sh bench/gpu/tune.sh "$out.2" | sed -nE "s,$out,OUT,; /no time/p"
echo "== cases whose kernel has nothing to tune"
grep -v '^#' bench/gpu/tune_cases.txt | while read -r name types above words; do
    at=${words%% *}
    awk -v k="${at#*:}" -v bad="$name" '$1 == "kernel" { on = index($2, k "(") == 1 } on && /^    tune\(/ { ok = 1 }
        END { if (!ok) print bad }' "${at%%:*}"
done
