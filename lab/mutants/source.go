// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// pointsOf returns the points of a package, which is a directory of the module.
func pointsOf(ctx context.Context, module, pkg string) ([]point, error) {
	p, err := load(ctx, module, pkg)
	if err != nil {
		return nil, err
	}
	return slices.Concat(p.points...), nil
}

// source is a parsed package.
type source struct {
	set     *token.FileSet
	files   []string // relative to the module
	syntax  []*ast.File
	content [][]byte
	points  [][]point
}

// load parses and checks a package. Its imports are read from compiled packages.
func load(ctx context.Context, module, pkg string) (*source, error) {
	output, err := command(ctx, module, "go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles", "./"+pkg)
	if err != nil {
		return nil, err
	}
	type listed struct {
		ImportPath string
		Export     string
		GoFiles    []string
	}
	var last listed // -deps lists the package after its dependencies.
	exports := make(map[string]string)
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath], last = l.Export, l
	}
	s := &source{set: token.NewFileSet()}
	for _, name := range last.GoFiles {
		file := filepath.Join(pkg, name)
		content, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			return nil, err
		}
		syntax, err := parser.ParseFile(s.set, file, content, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files, s.syntax, s.content = append(s.files, file), append(s.syntax, syntax), append(s.content, content)
	}
	config := types.Config{Importer: importer.ForCompiler(s.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	info := &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue),
		Defs:  make(map[*ast.Ident]types.Object),
		Uses:  make(map[*ast.Ident]types.Object),
	}
	if _, err := config.Check(last.ImportPath, s.set, s.syntax, info); err != nil {
		return nil, err
	}
	for i, file := range s.files {
		s.points = append(s.points, find(s.set, info, s.syntax[i], s.content[i], file))
	}
	return s, nil
}

// mutated returns the content of each file that has mutants of the sample. It marks them as found and sets their line.
func (s *source) mutated(sample []mutant, found []bool) map[string][]byte {
	files := make(map[string][]byte)
	for i, points := range s.points {
		var edits []edit
		for _, p := range points {
			number := slices.IndexFunc(sample, func(m mutant) bool { return m.same(p.mutant) })
			if number >= 0 {
				edits = append(edits, p.edits(number+1)...)
				found[number], sample[number].line = true, p.line
			}
		}
		if len(edits) > 0 {
			// On the line of the package clause, so that all lines keep their numbers.
			end := s.syntax[i].Name.End()
			edits = append(edits, edit{from: end, to: end, text: `; import "trueup.dev/internal/mutant"`})
			files[s.files[i]] = apply(s.set, s.content[i], edits)
		}
	}
	return files
}

// same reports whether two mutants are at the same place, and the source there is the same.
func (m mutant) same(o mutant) bool {
	return m.File == o.File && m.Function == o.Function && m.Kind == o.Kind && m.Nth == o.Nth && m.Text == o.Text
}

// apply makes edits. The ones of outer points must be before the ones of inner points.
func apply(set *token.FileSet, content []byte, edits []edit) []byte {
	// At the same place, the text that closes an inner point is first, and the text that opens an outer point.
	var ordered []edit
	for _, e := range slices.Backward(edits) {
		if e.closing {
			ordered = append(ordered, e)
		}
	}
	for _, e := range edits {
		if !e.closing {
			ordered = append(ordered, e)
		}
	}
	slices.SortStableFunc(ordered, func(a, b edit) int { return int(a.from - b.from) })
	var b bytes.Buffer
	written := 0
	for _, e := range ordered {
		from, to := set.Position(e.from).Offset, set.Position(e.to).Offset
		b.Write(content[written:from])
		b.WriteString(e.text)
		written = to
	}
	b.Write(content[written:])
	return b.Bytes()
}

// command runs a command in a directory and returns its output. The error has what it printed.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	output, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w\n%s%s", cmd, err, output, exit.Stderr)
	}
	return output, err
}
