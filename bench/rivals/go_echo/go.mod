module weft/bench/go_echo

go 1.21
