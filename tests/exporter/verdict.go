// The verdicts of exporter-toolkit itself on tests/exporter/web_fixtures.py, compared by hand when either changes:
//
//	python tests/exporter/web_fixtures.py FOLDER > expected
//	mkdir verdict && cp tests/exporter/verdict.go verdict && cd verdict
//	go mod init verdict && go get github.com/prometheus/exporter-toolkit@v0.20.0 && go run . FOLDER > found
//	diff <(cut -f 1,2 expected) <(cut -f 1,2 found)
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/exporter-toolkit/web"
)

func main() {
	files, err := filepath.Glob(filepath.Join(os.Args[1], "[0-9]*.yml"))
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		if err := validate(file); err == nil {
			fmt.Printf("%s\tgood\n", filepath.Base(file))
		} else {
			fmt.Printf("%s\tbad\t%q\n", filepath.Base(file), err)
		}
	}
}

func validate(file string) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	return web.Validate(file)
}
