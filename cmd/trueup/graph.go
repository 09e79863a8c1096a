// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"trueup.dev/graph"
)

// graphFormats are the output formats of the command graph.
var graphFormats = map[string]func(context.Context, *graph.Graph) (string, error){
	"text":    func(_ context.Context, g *graph.Graph) (string, error) { return g.Text(), nil },
	"mermaid": func(_ context.Context, g *graph.Graph) (string, error) { return g.Mermaid(), nil },
	"dot":     func(_ context.Context, g *graph.Graph) (string, error) { return g.DOT(), nil },
	"svg":     svg,
	"json": func(_ context.Context, g *graph.Graph) (string, error) {
		content, err := json.MarshalIndent(g, "", "  ")
		return string(content) + "\n", err
	},
}

func graphCommand() *subcommand {
	c := newSubcommand("graph", "Print the reconcilers of your program as a tree")
	c.long = `graph runs the main package of your program and prints its reconcilers: how they are nested, and what each of
them owns, tracks, watches and writes. It needs no cluster. The main function must contain one line:

  graph.Main(scheme, setUp)    // before it connects to a cluster

The format svg needs the program dot of Graphviz. Without it: ` + withoutGraphviz
	c.example = `  trueup graph --package ./cmd --format mermaid`
	pkg := packageFlag(c)
	format := c.flags.StringP("format", "f", "text", "the format: text, mermaid, dot, svg or json")
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		render, ok := graphFormats[*format]
		if !ok {
			return fmt.Errorf("--format must be text, mermaid, dot, svg or json, got %q", *format)
		}
		g, err := graphOf(ctx, *pkg, stderr)
		if err != nil {
			return err
		}
		text, err := render(ctx, g)
		if err != nil {
			return err
		}
		_, err = io.WriteString(stdout, text)
		return err
	}
	return c
}

const withoutGraphviz = "trueup graph --format dot | go run trueup.dev/graph/svg@latest"

// svg lets Graphviz draw the graph.
func svg(ctx context.Context, g *graph.Graph) (string, error) {
	path, err := exec.LookPath("dot")
	if err != nil {
		return "", fmt.Errorf("no program dot on the PATH: install Graphviz, or run: %s", withoutGraphviz)
	}
	var out, stderr strings.Builder
	cmd := exec.CommandContext(ctx, path, "-Tsvg")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(g.DOT()), &out, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd, err, stderr.String())
	}
	return out.String(), nil
}

func packageFlag(c *subcommand) *string {
	return c.flags.StringP("package", "p", ".", "the main package of your program, as an argument of go run")
}

// graphOf runs a program that calls [graph.Main] and returns its graph. The program can reach no cluster.
func graphOf(ctx context.Context, pkg string, stderr io.Writer) (*graph.Graph, error) {
	if err := importsGraph(ctx, pkg); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "trueup-graph-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "graph.json")
	cmd := exec.CommandContext(ctx, "go", "run", pkg)
	cmd.Stdout, cmd.Stderr = stderr, stderr
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "KUBERNETES_SERVICE_")
	}), graph.Variable+"="+file, "KUBECONFIG="+filepath.Join(dir, "no-cluster"))
	runErr := cmd.Run()
	content, err := os.ReadFile(file) //nolint:gosec // a file of this process
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist) && runErr == nil:
		return nil, fmt.Errorf("%s ended without a call of graph.Main; %s", pkg, mainLine)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%v: %w", cmd, runErr)
	case err != nil:
		return nil, err
	}
	g := &graph.Graph{}
	if err := json.Unmarshal(content, g); err != nil {
		return nil, fmt.Errorf("the graph of %s: %w", pkg, err)
	}
	return g, nil
}

const mainLine = "call graph.Main(scheme, setUp) of package trueup.dev/graph in the main function, " +
	"before it connects to a cluster"

// importsGraph returns an error if a package is not a main package that imports package graph: it would run as usual,
// and not write a graph.
func importsGraph(ctx context.Context, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", `{{.Name}}{{range .Imports}} {{.}}{{end}}`, pkg)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("--package %s: %w\n%s", pkg, err, stderr.String())
	}
	words := strings.Fields(string(out))
	switch {
	case len(words) == 0 || words[0] != "main":
		return fmt.Errorf("--package %s is not a main package; name the package of your main function", pkg)
	case !slices.Contains(words, "trueup.dev/graph"):
		return fmt.Errorf("--package %s does not import trueup.dev/graph; %s", pkg, mainLine)
	}
	return nil
}
