// SPDX-License-Identifier: Apache-2.0

// Package phrase has the parts that messages of package converge have in common.
package phrase

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names of clients that are neither actors nor further programs. Events have the name of the client that has made
// the change.
const (
	Manager       = "manager"
	User          = "user"
	AnotherClient = "another client"
	// GarbageCollector is the name of the garbage collector.
	GarbageCollector = "kube-controller-manager"
)

// Name returns the name of an object with its namespace, if it has one.
func Name(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// Plural formats a number of things.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "ty"); ok {
		return fmt.Sprintf("%d %sties", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Error returns the text of an error, or "" without one.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// After formats an error as the end of a sentence.
func After(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// SortedKeys returns the sorted keys of a map.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// FirstLine returns the first line of a text.
func FirstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

// Shorten returns the first line of a text, as far as a timeline has room for.
func Shorten(s string) string {
	const most = 90
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// Describe names an object in steps.
func Describe(obj client.Object) string {
	return fmt.Sprintf("%s %s", KindOf(obj), client.ObjectKeyFromObject(obj))
}

// KindOf returns the kind of an object or, if the object does not have it, the name of its type, as code has it.
func KindOf(obj client.Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return typeArgumentPackage.ReplaceAllString(reflect.TypeOf(obj).Elem().Name(), "$1")
}

// typeArgumentPackage is the path of the package of a type argument, in the name of a generic type.
var typeArgumentPackage = regexp.MustCompile(`([\[,*\]])[^\[\],*]*[./]`)
