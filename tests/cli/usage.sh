# Wrong command lines: one message, status 2.
k() { echo "\$ kiln $*"; "$KILN" "$@" 2>&1; echo "rc $?"; }
k
k rnu x.kiln
k run
k run --devcie cpu x.kiln
k run -Z x.kiln
k run x.kiln --device
k run x.kiln --time=3
k run x.kiln --device gpu
k run x.kiln --threads 0
k run x.kiln --threads 1x
k run x.kiln --opt 3
k run x.kiln --cc gcc
k run x.kiln --color blue
k run x.kiln --tol 1e-5
k run x.kiln word
k run x.kiln -D word
k run x.kiln -o y
k run x.kiln -o y=a.npy -o y=b.npy
k run x.kiln --keep no/where
k run x.kiln
k run .
k emit x.kiln --stage sass
k check x.kiln --format xml
k test
k test nowhere
k doctor now
k help K9999
k help explian
k help run test
