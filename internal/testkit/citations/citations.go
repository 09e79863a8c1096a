// SPDX-License-Identifier: Apache-2.0

// Package citations checks that rules which this repository repeats from Kubernetes name the functions that they come
// from, so that a reader can compare them, and that a new version of Kubernetes without such a function fails a test.
//
// A citation is a line of the comment of a function:
//
//	// Upstream: pkg/apis/core/validation/validation.go: ValidateSecret, ValidateSecretUpdate
//
// The path names a file in k8s.io/kubernetes or, with the path of the module, in a module that it stages, like
// k8s.io/apimachinery/pkg/api/validation/objectmeta.go. The type of a method can be added, as in jobStrategy.Validate.
package citations

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var line = regexp.MustCompile(`^//\s*Upstream: (\S+\.go): (\w+(?:\.\w+)?(?:, \w+(?:\.\w+)?)*)$`)

// Missing returns the rules in the Go files of a directory whose comments cite nothing. Rules are the functions that
// isRule selects, and the function literals in struct literals of the given generic type, which have their comments
// above them. It fails the test for comments that look like citations but are none.
func Missing(t testing.TB, dir, literals string, isRule func(*ast.FuncDecl) bool) []string {
	t.Helper()
	var missing []string
	eachFile(t, dir, func(fset *token.FileSet, file *ast.File) {
		ends := map[int]*ast.CommentGroup{} // by the lines that follow them
		for _, group := range file.Comments {
			ends[fset.Position(group.End()).Line+1] = group
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if isRule(n) && !cites(n.Doc) {
					missing = append(missing, n.Name.Name)
				}
			case *ast.CompositeLit:
				if index, ok := n.Type.(*ast.IndexExpr); !ok || name(index.X) != literals {
					return true
				}
				for _, element := range n.Elts {
					pair, ok := element.(*ast.KeyValueExpr)
					if !ok {
						continue
					}
					if _, ok := pair.Value.(*ast.FuncLit); ok && !cites(ends[fset.Position(pair.Pos()).Line]) {
						missing = append(missing, fset.Position(pair.Pos()).String()+": "+name(pair.Key))
					}
				}
			}
			return true
		})
	})
	return missing
}

// Unknown returns the citations in the Go files of a directory that do not exist in the version of Kubernetes that the
// control plane consists of. It downloads the sources if the module cache does not have them.
func Unknown(t testing.TB, dir, controlplane string) []string {
	t.Helper()
	cited := map[string][]string{} // functions by file
	eachFile(t, dir, func(_ *token.FileSet, file *ast.File) {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if m := line.FindStringSubmatch(comment.Text); m != nil {
					cited[m[1]] = append(cited[m[1]], strings.Split(m[2], ", ")...)
				} else if strings.HasPrefix(comment.Text, "// Upstream:") {
					t.Errorf("%s: not a citation: %s", file.Name, comment.Text)
				}
			}
		}
	})
	if len(cited) == 0 {
		t.Fatalf("%s cites nothing", dir)
	}
	modules := sources(t, controlplane, cited)
	var unknown []string
	for path, functions := range cited {
		module, file := split(path)
		source, err := os.ReadFile(filepath.Join(modules[module], filepath.FromSlash(file)))
		if err != nil {
			unknown = append(unknown, path)
			continue
		}
		for _, function := range functions {
			pattern := `(?m)^func (\([^)]+\) )?` + function + `[\[(]`
			if receiver, method, ok := strings.Cut(function, "."); ok {
				pattern = `(?m)^func \((\w+ )?\*?` + receiver + `\) ` + method + `\(`
			}
			if !regexp.MustCompile(pattern).Match(source) {
				unknown = append(unknown, path+": "+function)
			}
		}
	}
	return unknown
}

// split returns the module of a cited path, and the path in it.
func split(path string) (module, file string) {
	if parts := strings.SplitN(path, "/", 3); parts[0] == "k8s.io" {
		return parts[0] + "/" + parts[1], parts[2]
	}
	return "k8s.io/kubernetes", path
}

// sources returns the directories of the modules with the cited files.
func sources(t testing.TB, controlplane string, cited map[string][]string) map[string]string {
	t.Helper()
	args, dirs := []string{"mod", "download", "-json"}, map[string]string{}
	for path := range cited {
		if module, _ := split(path); dirs[module] == "" {
			args, dirs[module] = append(args, module), "unknown"
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = controlplane
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var module struct{ Path, Dir string }
		if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
			return dirs
		} else if err != nil {
			t.Fatal(err)
		}
		dirs[module.Path] = module.Dir
	}
}

func eachFile(t testing.TB, dir string, visit func(*token.FileSet, *ast.File)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(fset, file)
	}
}

func cites(group *ast.CommentGroup) bool {
	if group == nil {
		return false
	}
	for _, comment := range group.List {
		if line.MatchString(comment.Text) {
			return true
		}
	}
	return false
}

func name(e ast.Expr) string {
	if ident, ok := e.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}
