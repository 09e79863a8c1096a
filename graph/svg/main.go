// SPDX-License-Identifier: Apache-2.0

// Command svg reads a graph in the language of Graphviz from standard input and writes it as SVG to standard output.
// Graphviz itself is part of the program, compiled to WebAssembly, so that it need not be installed:
//
//	trueup graph --format dot | go run trueup.dev/graph/svg@latest > graph.svg
//
// It is a module of its own, so that users of trueup do not inherit its dependencies. The exit code is 1 after an
// error, which is printed to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-graphviz"
)

func main() {
	if err := draw(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// draw reads DOT and writes SVG. It writes nothing after an error.
func draw(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	dot, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if strings.TrimSpace(string(dot)) == "" {
		return errors.New("standard input is empty; it must be the output of: trueup graph --format dot")
	}
	layout, err := graphviz.New(ctx)
	if err != nil {
		return fmt.Errorf("starting Graphviz: %w", err)
	}
	defer func() { err = errors.Join(err, layout.Close()) }()
	parsed, err := graphviz.ParseBytes(dot)
	if err != nil {
		return fmt.Errorf("standard input is not a graph in the language of Graphviz: %w", err)
	}
	defer func() { err = errors.Join(err, parsed.Close()) }()
	var image strings.Builder
	if err := layout.Render(ctx, parsed, graphviz.SVG, &image); err != nil {
		return fmt.Errorf("drawing the graph: %w", err)
	}
	_, err = io.WriteString(out, image.String())
	return err
}
