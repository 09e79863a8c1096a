// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"fmt"
	"go/token"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// packages names types as a test does, and keeps the imports that the test needs for that.
type packages struct {
	schemes []*runtime.Scheme
	// imports are the paths of packages by their names.
	imports map[string]string
}

// packageNames are names of packages that are not derived from their paths.
var packageNames = map[string]string{
	"trueup.dev/testing":                 "rtesting",
	"trueup.dev/time":                    "rtime",
	"k8s.io/apimachinery/pkg/api/errors": "apierrors",
	"sigs.k8s.io/controller-runtime":     "ctrl",
}

// reconcilersPath is a package with aliases of types of other packages.
const reconcilersPath = "trueup.dev/reconcilers"

// ownPackage returns the path of the package under test, "" if the program is not a test.
var ownPackage = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	path, _ := strings.CutSuffix(info.Path, ".test")
	return path
})

var apiVersion = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// alias returns the name to import a package as. name is the name in its package clause.
func (p *packages) alias(path, name string) string {
	if alias, ok := packageNames[path]; ok {
		return alias
	}
	elements := strings.Split(path, "/")
	if !apiVersion.MatchString(name) || len(elements) < 2 {
		return name
	}
	parent := elements[len(elements)-2]
	if parent == "api" || parent == "apis" {
		if parent = p.group(path); parent == "" {
			return name
		}
	}
	alias := strings.NewReplacer("-", "", "_", "", ".", "").Replace(parent) + name
	if slices.ContainsFunc(elements, func(e string) bool { return strings.HasPrefix(e, "applyconfiguration") }) {
		alias += "ac"
	}
	return alias
}

// group returns the first label of the API group whose types are in the package.
func (p *packages) group(path string) string {
	found := ""
	for _, scheme := range p.schemes {
		for gvk, t := range scheme.AllKnownTypes() {
			// the first one in alphabetical order: the order of a map is random
			if t.PkgPath() == path && gvk.Group != "" && (found == "" || gvk.Group < found) {
				found = gvk.Group
			}
		}
	}
	label, _, _ := strings.Cut(found, ".")
	return label
}

// qualified returns the name of something in a package.
func (p *packages) qualified(path, packageName, name string) string {
	if path == "main" || strings.HasSuffix(path, "_test") || path == ownPackage() && !token.IsExported(name) {
		return name
	}
	alias := p.alias(path, packageName)
	p.imports[alias] = path
	return alias + "." + name
}

// writable reports whether a test can write the type.
func (p *packages) writable(t reflect.Type) bool {
	if t.Name() != "" {
		path := t.PkgPath()
		return path == "" || token.IsExported(t.Name()) || path == "main" || path == ownPackage() ||
			path == ownPackage()+"_test"
	}
	switch t.Kind() {
	case reflect.Map:
		return p.writable(t.Key()) && p.writable(t.Elem())
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
		return p.writable(t.Elem())
	}
	return true
}

// typeName returns the type as it is written in Go.
func (p *packages) typeName(t reflect.Type) string {
	if t.Name() != "" {
		return p.named(t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + p.typeName(t.Elem())
	case reflect.Slice:
		if isBytes(t) {
			return "[]byte"
		}
		return "[]" + p.typeName(t.Elem())
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), p.typeName(t.Elem()))
	case reflect.Map:
		return "map[" + p.typeName(t.Key()) + "]" + p.typeName(t.Elem())
	case reflect.Struct:
		return p.structType(t)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return "any"
		}
	}
	return t.String()
}

func (p *packages) named(t reflect.Type) string {
	if t.PkgPath() == "" {
		return t.Name()
	}
	switch t {
	case reflect.TypeFor[reconcile.Request](), reflect.TypeFor[reconcile.Result]():
		return p.qualified(reconcilersPath, "reconcilers", t.Name())
	}
	packageName, _, _ := strings.Cut(t.String(), ".")
	name, args, generic := strings.Cut(t.Name(), "[")
	if generic {
		name += "[" + p.typeArguments(args)
	}
	return p.qualified(t.PkgPath(), packageName, name)
}

var (
	// qualifiedName matches a type argument: the path of its package and its name.
	qualifiedName = regexp.MustCompile(`([\w\-.~%/]+)\.(\w+)`)
	// localType matches the suffix of types that are declared in functions.
	localType = regexp.MustCompile(`·\d+`)
)

// typeArguments replaces paths of packages by their names.
func (p *packages) typeArguments(args string) string {
	return qualifiedName.ReplaceAllStringFunc(localType.ReplaceAllString(args, ""), func(match string) string {
		parts := qualifiedName.FindStringSubmatch(match)
		path := strings.ReplaceAll(parts[1], "%2e", ".")
		return p.qualified(path, path[strings.LastIndex(path, "/")+1:], parts[2])
	})
}

func (p *packages) structType(t reflect.Type) string {
	fields := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		field := t.Field(i)
		text := p.typeName(field.Type)
		if !field.Anonymous {
			text = field.Name + " " + text
		}
		if field.Tag != "" {
			text += " " + quote(string(field.Tag))
		}
		fields = append(fields, text)
	}
	return "struct{" + strings.Join(fields, "; ") + "}"
}
