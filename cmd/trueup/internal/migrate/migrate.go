// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Options say what to migrate.
type Options struct {
	Dir      string     // a directory of the module
	Patterns []string   // the files that may be changed, as in the go command. Defaults to ./...
	From     Generation // defaults to what the imports and go.mod say
	Diff     bool       // print a diff and write nothing
	Force    bool       // also change files with changes that are not committed
	Version  string     // the version of trueup that `go get` should get. Defaults to latest
}

// ErrLeft is returned when something is left to do by hand.
var ErrLeft = errors.New("something is left to do by hand")

//go:embed pasted
var pastedFiles embed.FS

// result is a file to write, or to delete if after is nil.
type result struct {
	name          string
	before, after []byte
}

// outcome is what a migration comes to.
type outcome struct {
	generation   Generation
	results      []result
	left, review []Left
}

// Run migrates a module and prints what it did and what is left.
func Run(ctx context.Context, out io.Writer, o Options) error {
	if len(o.Patterns) == 0 {
		o.Patterns = []string{"./..."}
	}
	p, err := load(o.Dir, o.Patterns)
	if err != nil {
		return err
	}
	done, err := p.migrate(ctx, o.From)
	if err != nil {
		return err
	}
	if o.Diff {
		for _, r := range done.results {
			fmt.Fprint(out, unified(r.name, string(r.before), string(r.after)))
		}
	} else {
		if !o.Force {
			if err := p.committed(ctx, done.results); err != nil {
				return err
			}
		}
		for _, r := range done.results {
			name := filepath.Join(p.root, filepath.FromSlash(r.name))
			if r.after == nil {
				err = os.Remove(name)
			} else {
				err = write(name, r.after)
			}
			if err != nil {
				return err
			}
		}
	}
	return done.print(out, o)
}

// migrate returns the changed files. It writes nothing.
func (p *project) migrate(ctx context.Context, from Generation) (*outcome, error) {
	p.sort()
	generation := from
	if from == "" {
		var err error
		if generation, err = p.generation(); err != nil {
			return nil, err
		}
	}
	done := &outcome{generation: generation}
	in := p.infer()
	r := &rewriter{
		inference: in, generation: generation, contexts: map[ast.Node]string{}, done: map[ast.Node]bool{},
		replaced: map[token.Pos]int{}, removed: map[token.Pos]row{},
	}
	var unknown []use
	if generation == Grafana {
		r.generatedCode()
	} else {
		unknown = in.write()
	}
	for _, f := range p.files {
		if f.selected && !f.deleted {
			r.literals(f)
			r.namesIn(f)
			r.statusKinds(f)
			r.usesOfRemoved(f)
		}
	}
	for _, f := range p.files {
		if !f.selected {
			continue
		}
		if f.deleted {
			done.results = append(done.results, result{name: f.name, before: f.src})
			continue
		}
		after, err := f.result()
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(f.src, after) {
			done.results = append(done.results, result{f.name, f.src, after})
		}
		done.left = append(done.left, left(f.name, after, generation)...)
		for _, u := range unknown {
			if u.file == f {
				line := newLine(f, u.expr.Pos())
				done.left = append(done.left, Left{
					f.name, line, "the type parameter of " + u.name + " is unknown", V06, "ResourceReconciler{Type: &T{}}",
				})
			}
		}
		for _, found := range r.findings {
			if found.file == f {
				list := &done.review
				if found.left {
					list = &done.left
				}
				*list = append(*list, Left{f.name, newLine(f, found.pos), found.text, found.row.page, found.row.old})
			}
		}
	}
	for _, list := range [][]Left{done.left, done.review} {
		slices.SortStableFunc(list, func(a, b Left) int {
			return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line)
		})
	}
	pastes, err := p.paste(done.results)
	if err != nil {
		return nil, err
	}
	done.results = append(done.results, pastes...)
	goMod, err := p.newGoMod(ctx)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(goMod, p.goMod) {
		done.results = append(done.results, result{"go.mod", p.goMod, goMod})
	}
	return done, nil
}

// newLine returns the line that a position has after the edits, nearly: imports and the formatting may move it.
func newLine(f *file, pos token.Pos) int {
	line := f.project.fset.Position(pos).Line
	for _, e := range f.edits {
		if e.end <= f.offset(pos) {
			line += strings.Count(e.text, "\n") - bytes.Count(f.src[e.start:e.end], []byte("\n"))
		}
	}
	return line
}

// paste returns the packages that changed files import and the module does not have yet.
func (p *project) paste(results []result) ([]result, error) {
	var pastes []result
	for _, name := range []string{"factories", "kit", "validation", "webhooks"} {
		file := pastedDir + "/" + name + "/" + name + ".go"
		_, err := os.Stat(filepath.Join(p.root, filepath.FromSlash(file)))
		needed := slices.ContainsFunc(results, func(r result) bool {
			return bytes.Contains(r.after, []byte(`"`+p.pastedPath(name)+`"`))
		})
		if !needed || err == nil {
			continue
		}
		content, err := pastedFiles.ReadFile("pasted/" + name + ".go.txt")
		if err != nil {
			return nil, err
		}
		pastes = append(pastes, result{name: file, after: content})
	}
	return pastes, nil
}

// committed returns an error if git does not have the content of a file that would be overwritten.
func (p *project) committed(ctx context.Context, results []result) error {
	args := []string{"status", "--porcelain", "--ignored", "--untracked-files=all", "--"}
	for _, r := range results {
		if r.before != nil {
			args = append(args, r.name)
		}
	}
	if len(args) == 5 {
		return nil
	}
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // names of files after --
	cmd.Dir = p.root
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("git has no copy of the files in %s (%w); nothing was changed. "+
			"Commit them, or use --force or --diff", p.root, err)
	case len(out) > 0:
		return fmt.Errorf("these files have changes that are not committed; nothing was changed. "+
			"Commit them, or use --force or --diff:\n%s", strings.TrimRight(string(out), "\n"))
	}
	return nil
}

// write replaces a file at once: a run that is interrupted leaves the old or the new file.
func write(name string, content []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	} else if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // a directory with source code
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), ".trueup-migrate-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Close())
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), name)
}

// print prints a summary. It returns ErrLeft if something is left.
func (done *outcome) print(out io.Writer, o Options) error {
	changed, deleted := "changed", "deleted"
	if o.Diff {
		changed, deleted = "would change", "would be deleted"
	}
	fmt.Fprintf(out, "from %s, see docs/migration/%s.md\n", done.generation, done.generation)
	for _, r := range done.results {
		switch {
		case r.before == nil:
			fmt.Fprintf(out, "%s: new, it is yours\n", r.name)
		case r.after == nil:
			fmt.Fprintf(out, "%s: %s, it was generated\n", r.name, deleted)
		default:
			fmt.Fprintf(out, "%s: %s\n", r.name, changed)
		}
	}
	section := func(title string, list []Left) {
		if len(list) > 0 {
			fmt.Fprintf(out, "\n%s\n", title)
		}
		for _, l := range list {
			fmt.Fprintf(out, "  %s:%d: %s; docs/migration/%s.md", l.File, l.Line, l.Text, l.Page)
			if l.Row != "" {
				fmt.Fprintf(out, ", row %s", l.Row)
			}
			fmt.Fprintln(out)
		}
	}
	section("changed, to review:", done.review)
	section("left by hand:", done.left)
	version := cmp.Or(o.Version, "latest")
	fmt.Fprintf(out, "\nnext: go get %s@%s && go mod tidy && go vet ./...\n", trueupModule, version)
	if len(done.left) > 0 {
		return ErrLeft
	}
	return nil
}
