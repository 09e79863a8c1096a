// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// project is a Go module as its source shows it.
type project struct {
	root   string // the directory of go.mod
	module string // the module path
	goMod  []byte
	fset   *token.FileSet
	files  []*file
	// declared maps the position of a declared name to its declaration.
	declared map[token.Pos]declaration
	objects  map[*ast.Ident]token.Pos // the position of the declaration of an identifier
	checked  map[string]*types.Package

	methods   map[string]declaration // of types of the project, by the key of the type and the name
	factories bool                   // objects for tests are made by factories
}

// file is a Go file of a project.
type file struct {
	project  *project
	name     string // relative to the root, with slashes
	dir      string
	src      []byte
	ast      *ast.File
	imports  map[string]string // import paths by the name in the file
	selected bool              // the file may be changed
	deleted  bool              // the file is deleted
	edits    []edit
	needs    map[string]string // names of imports to add, by import path
}

// declaration is what the source states about a name.
type declaration struct {
	file  *file
	typ   ast.Expr      // of a variable, parameter or field
	value ast.Expr      // of a variable without a type
	fn    *ast.FuncType // of a function
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)"?`)

// load parses the module that contains dir. Patterns select the files that may be changed, as in the go command.
func load(dir string, patterns []string) (*project, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root := dir
	for ; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return nil, fmt.Errorf("no go.mod in %s or a directory above it", dir)
		}
	}
	goMod, err := os.ReadFile(filepath.Join(root, "go.mod")) //nolint:gosec // the module of the user
	if err != nil {
		return nil, err
	}
	match := moduleLine.FindSubmatch(goMod)
	if match == nil {
		return nil, fmt.Errorf("%s has no module directive", filepath.Join(root, "go.mod"))
	}
	p := &project{
		root: root, module: string(match[1]), goMod: goMod, fset: token.NewFileSet(),
		declared: map[token.Pos]declaration{}, objects: map[*ast.Ident]token.Pos{},
		checked: map[string]*types.Package{}, methods: map[string]declaration{},
	}
	if err := p.parse(); err != nil {
		return nil, err
	}
	for _, pattern := range patterns {
		if err := p.choose(dir, pattern); err != nil {
			return nil, err
		}
	}
	p.resolve()
	p.index()
	return p, nil
}

func (p *project) parse() error {
	return filepath.WalkDir(p.root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if name != p.root && (nested == nil || base == "vendor" || base == "testdata" ||
				strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || !entry.Type().IsRegular() {
			return nil
		}
		src, err := os.ReadFile(name) //nolint:gosec // a file of the module of the user
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(p.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
		relative, err := filepath.Rel(p.root, name)
		if err != nil {
			return err
		}
		f := &file{
			project: p, name: filepath.ToSlash(relative), src: src, ast: parsed,
			imports: map[string]string{}, needs: map[string]string{},
		}
		f.dir = path.Dir(f.name)
		for _, spec := range parsed.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			p.factories = p.factories || pastedPackages[imported] == "factories"
			if spec.Name != nil {
				f.imports[spec.Name.Name] = imported
			} else {
				f.imports[packageName(imported)] = imported
			}
		}
		p.files = append(p.files, f)
		return nil
	})
}

// choose marks the files that a pattern of the go command selects.
func (p *project) choose(dir, pattern string) error {
	target, below := strings.CutSuffix(pattern, "...")
	absolute := filepath.Join(dir, filepath.FromSlash(target))
	if filepath.IsAbs(target) {
		absolute = filepath.Clean(target)
	}
	relative, err := filepath.Rel(p.root, absolute)
	if err != nil || strings.HasPrefix(relative, "..") {
		return fmt.Errorf("%s is not below %s", pattern, p.root)
	}
	relative = filepath.ToSlash(relative)
	found := false
	for _, f := range p.files {
		if f.dir == relative || below && (relative == "." || strings.HasPrefix(f.dir+"/", relative+"/")) {
			f.selected, found = true, true
		}
	}
	if !found {
		return fmt.Errorf("no Go files match %s", pattern)
	}
	return nil
}

var majorVersion = regexp.MustCompile(`^v\d+$`)

// packageName returns the name that a package most likely has.
func packageName(importPath string) string {
	base := path.Base(importPath)
	if majorVersion.MatchString(base) && strings.Count(importPath, "/") > 1 && !strings.HasPrefix(importPath, "k8s.io/") &&
		!strings.Contains(importPath, "/api/") && !strings.Contains(importPath, "/apis/") {
		base = path.Base(path.Dir(importPath))
	}
	base, _, _ = strings.Cut(base, ".")
	return strings.TrimPrefix(base, "go-")
}

func (p *project) importPath(f *file) string { return path.Join(p.module, f.dir) }

// resolve finds the declaration of each identifier. Packages of other modules are empty; type errors do not matter.
func (p *project) resolve() {
	byDir := map[string][]*file{}
	for _, f := range p.files {
		byDir[f.dir] = append(byDir[f.dir], f)
	}
	for _, files := range byDir {
		internal, external := []*ast.File{}, []*ast.File{}
		for _, f := range files {
			if strings.HasSuffix(f.ast.Name.Name, "_test") && strings.HasSuffix(f.name, "_test.go") {
				external = append(external, f.ast)
			} else {
				internal = append(internal, f.ast)
			}
		}
		p.check(p.importPath(files[0]), internal)
		p.check(p.importPath(files[0])+"_test", external)
	}
}

// Import implements [types.Importer].
func (p *project) Import(imported string) (*types.Package, error) {
	if known := p.checked[imported]; known != nil {
		return known, nil
	}
	empty := types.NewPackage(imported, packageName(imported))
	empty.MarkComplete()
	p.checked[imported] = empty // also ends cycles
	var files []*ast.File
	for _, f := range p.files {
		if p.importPath(f) == imported && !strings.HasSuffix(f.name, "_test.go") {
			files = append(files, f.ast)
		}
	}
	if len(files) > 0 {
		p.checked[imported] = p.check(imported, files)
	}
	return p.checked[imported], nil
}

func (p *project) check(name string, files []*ast.File) *types.Package {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: p, Error: func(error) {}, DisableUnusedImportCheck: true, FakeImportC: true}
	checked, _ := config.Check(name, p.fset, files, info) // the code does not compile
	for _, resolved := range []map[*ast.Ident]types.Object{info.Defs, info.Uses} {
		for ident, object := range resolved {
			if object != nil && object.Pos().IsValid() {
				if _, isPackage := object.(*types.PkgName); !isPackage {
					p.objects[ident] = object.Pos()
				}
			}
		}
	}
	return checked
}

// index collects the declarations.
func (p *project) index() {
	for _, f := range p.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				p.declared[n.Name.Pos()] = declaration{file: f, fn: n.Type}
				if n.Recv != nil && len(n.Recv.List) == 1 {
					receiver := n.Recv.List[0].Type
					if star, ok := receiver.(*ast.StarExpr); ok {
						receiver = star.X
					}
					p.methods[shownType{f, receiver}.key()+"."+n.Name.Name] = declaration{file: f, fn: n.Type}
					p.factories = p.factories || n.Name.Name == "CreateObject"
				}
			case *ast.TypeSpec:
				if methods, ok := n.Type.(*ast.InterfaceType); ok {
					for _, method := range methods.Methods.List {
						key := shownType{f, n.Name}.key()
						if fn, ok := method.Type.(*ast.FuncType); ok {
							p.methods[key+"."+method.Names[0].Name] = declaration{file: f, fn: fn}
						} else if f.old(method.Type) == "testing.Factory" {
							p.methods[key+".CreateObject"] = declaration{file: f, fn: &ast.FuncType{}}
						}
					}
				}
			case *ast.SelectorExpr:
				if name := f.old(n); name == "testing.Factory" || name == "testing.Wrapper" {
					p.factories = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					p.declared[name.Pos()] = declaration{file: f, typ: n.Type}
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					d := declaration{file: f, typ: n.Type}
					if len(n.Values) == len(n.Names) {
						d.value = n.Values[i]
					}
					p.declared[name.Pos()] = d
				}
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE || len(n.Rhs) == 0 {
					break
				}
				for i, name := range n.Lhs {
					if ident, ok := name.(*ast.Ident); ok {
						d := declaration{file: f}
						if len(n.Lhs) == len(n.Rhs) {
							d.value = n.Rhs[i]
						} else if i == 0 {
							d.value = n.Rhs[0] // the first result of a call
						}
						if _, exists := p.declared[ident.Pos()]; !exists {
							p.declared[ident.Pos()] = d
						}
					}
				}
			}
			return true
		})
	}
}

// declarationOf returns the declaration of the name, or of the selected name, that an expression is.
func (p *project) declarationOf(expr ast.Expr) (token.Pos, declaration) {
	var ident *ast.Ident
	switch expr := ast.Unparen(expr).(type) {
	case *ast.Ident:
		ident = expr
	case *ast.SelectorExpr:
		ident = expr.Sel
	default:
		return token.NoPos, declaration{}
	}
	pos := p.objects[ident]
	return pos, p.declared[pos]
}

// selector splits a qualified identifier into the import path of the package and the name.
func (f *file) selector(expr ast.Expr) (imported, name string) {
	if sel, ok := expr.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok && f.project.objects[x] == token.NoPos {
			if imported, ok := f.imports[x.Name]; ok {
				return imported, sel.Sel.Name
			}
		}
	}
	return "", ""
}

// old returns a qualified identifier of a package that trueup replaces, as "reconcilers.SyncReconciler". The package is
// the path below the module.
func (f *file) old(expr ast.Expr) string {
	imported, name := f.selector(expr)
	if below, ok := belowOldModule(imported); ok {
		return below + "." + name
	}
	return ""
}

// belowOldModule returns the path of a package below the root of a module that trueup replaces.
func belowOldModule(imported string) (string, bool) {
	for _, module := range oldModules {
		if below, ok := strings.CutPrefix(imported, module+"/"); ok {
			return below, true
		}
	}
	if below, ok := strings.CutPrefix(imported, trueupModule+"/"); ok { // a second run
		return below, true
	}
	return "", false
}

func (f *file) offset(pos token.Pos) int { return f.project.fset.Position(pos).Offset }

func (f *file) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

func (p *project) sort() {
	slices.SortFunc(p.files, func(a, b *file) int { return strings.Compare(a.name, b.name) })
}
