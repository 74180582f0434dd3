module weft/bench/go_proxy

go 1.21
