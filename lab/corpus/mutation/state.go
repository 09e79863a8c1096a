// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/converge"
)

// state is a quiescent state: the value of each field, by the name of its object and its path.
type state map[string]string

// stateOf returns the state of some kinds, without values that depend on versions, times and chance.
func stateOf(there converge.State, kinds []schema.GroupVersionKind) state {
	s := state{}
	for key, value := range there.Cloud() {
		s["cloud "+key] = value
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := there.List(list); err != nil {
			s[kind.Kind] = err.Error()
			continue
		}
		s[kind.Kind+" objects"] = fmt.Sprint(len(list.Items))
		generated := map[string]int{}
		for _, obj := range list.Items {
			name := obj.GetNamespace() + "/" + obj.GetName()
			if prefix := obj.GetGenerateName(); prefix != "" {
				generated[prefix]++
				name = fmt.Sprintf("%s/%s*%d", obj.GetNamespace(), prefix, generated[prefix])
			}
			s.add(kind.Kind+" "+name, obj.Object)
		}
	}
	return s
}

// ofTheRun are fields that differ between runs, or with the number of writes.
var ofTheRun = []string{
	"uid", "resourceVersion", "generation", "observedGeneration", "managedFields", "creationTimestamp", "apiVersion",
}

func (s state) add(path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			s[path] = "{}"
		}
		for key, item := range value {
			if !slices.Contains(ofTheRun, key) {
				s.add(path+"."+key, item)
			}
		}
	case []any:
		for i, item := range value {
			s.add(fmt.Sprintf("%s[%d]", path, i), item)
		}
	case string:
		if _, err := time.Parse(time.RFC3339, value); err == nil {
			value = "a time"
		}
		s[path] = value
	default:
		s[path] = fmt.Sprint(value)
	}
}

// difference returns the difference to a wanted state. Fields that also differ in another run of the same reconciler
// must only exist.
func (s state) difference(wanted, other state) string {
	paths := maps.Clone(wanted)
	maps.Copy(paths, s)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		_, has := s[path]
		_, varies := other[path]
		if varies = varies && wanted[path] != other[path]; s[path] == wanted[path] || varies && has || !varies &&
			wanted[path] != other[path] {
			continue
		}
		return fmt.Sprintf("%s is %q, but %q with the correct reconciler", strings.TrimSpace(path), s[path], wanted[path])
	}
	return ""
}
