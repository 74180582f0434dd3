// A reverse proxy by net/http/httputil, with the same settings as examples/reverse_proxy: the Go side
// of bench/compare_proxy.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	address := flag.String("listen", "127.0.0.1:8080", "address and port; port 0 lets the system choose")
	to := flag.String("to", "", "the origin: http://127.0.0.1:9001")
	flag.Parse()
	origin, err := url.Parse(*to)
	if err != nil {
		fail(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		fail(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// The default of two idle connections for each host would make it dial for most requests.
	transport.MaxIdleConnsPerHost = 1000
	transport.MaxIdleConns = 1000
	transport.DisableCompression = true
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(origin)
			request.SetXForwarded()
			request.Out.Host = request.In.Host
		},
		Transport: transport,
		// The client ends in the middle of requests.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	go func() { fail(http.Serve(listener, proxy)) }()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}

func fail(reason any) {
	fmt.Fprintln(os.Stderr, "go_proxy:", reason)
	os.Exit(1)
}
