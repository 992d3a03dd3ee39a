# kiln doctor: one line about each thing; the folder of the cache, and why it is off.
d() { "$KILN" doctor "$@" | sed -E 's/^(kiln|cpu|compiler|gpu|kernels|remedy) .*/\1/' | sed "s|$HOME|HOME|" | grep -v '^remedy' | uniq; }
d
d --no-cache
d --cache-dir own
mkdir open; chmod 777 open
d --cache-dir open | tr '\n' ' ' | grep -c 'open: off: '
env -u HOME "$KILN" doctor | grep ^cache
