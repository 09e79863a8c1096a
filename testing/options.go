// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"trueup.dev/testing/internal/paths"
)

// Options for a custom [Differ]. They ignore fields that differ in each run of a test.
var (
	// IgnoreLastTransitionTime ignores the transition times of conditions: fields named LastTransitionTime, and
	// lastTransitionTime in unstructured content.
	IgnoreLastTransitionTime = cmp.FilterPath(func(path cmp.Path) bool {
		field, ok := path.Last().(cmp.StructField)
		return ok && field.Name() == "LastTransitionTime" || paths.EndsWithKeys(path, "lastTransitionTime")
	}, cmp.Ignore())

	// IgnoreTypeMeta ignores the API version and kind of typed objects, which the Go type implies. It does not ignore
	// those of unstructured objects.
	IgnoreTypeMeta = cmp.FilterPath(func(path cmp.Path) bool {
		return paths.IsFieldOf[metav1.TypeMeta](path, "APIVersion", "Kind")
	}, cmp.Ignore())

	// IgnoreCreationTimestamp ignores the creation timestamp of objects, typed or unstructured.
	IgnoreCreationTimestamp = cmp.FilterPath(func(path cmp.Path) bool {
		return paths.IsFieldOf[metav1.ObjectMeta](path, "CreationTimestamp") ||
			paths.EndsWithKeys(path, "metadata", "creationTimestamp")
	}, cmp.Ignore())

	// IgnoreResourceVersion ignores the resource version of objects, typed or unstructured.
	IgnoreResourceVersion = cmp.FilterPath(func(path cmp.Path) bool {
		return paths.IsFieldOf[metav1.ObjectMeta](path, "ResourceVersion") ||
			paths.EndsWithKeys(path, "metadata", "resourceVersion")
	}, cmp.Ignore())

	// onlyStatus ignores all of an object except for its status.
	onlyStatus = cmp.FilterPath(paths.IsOutsideStatus, cmp.Ignore())
)

// Options for a custom [Differ]. They compare values without exported fields, or with several forms, by their meaning.
var (
	// NormalizeLabelSelector compares label selectors by their text. A nil selector equals one that selects
	// everything.
	NormalizeLabelSelector = cmp.Transformer("labels.Selector", selectorText[labels.Selector])

	// NormalizeFieldSelector compares field selectors by their text. A nil selector equals one that selects
	// everything.
	NormalizeFieldSelector = cmp.Transformer("fields.Selector", selectorText[fields.Selector])

	// NormalizeApplyConfiguration compares apply configurations by their JSON form, which clients send to the API server.
	NormalizeApplyConfiguration = cmp.Transformer("runtime.ApplyConfiguration", func(ac runtime.ApplyConfiguration) any {
		var content any
		data, err := json.Marshal(ac)
		if err == nil {
			err = json.Unmarshal(data, &content)
		}
		if err != nil {
			return fmt.Sprintf("%T has no JSON form: %v", ac, err)
		}
		return content
	})
)

// selectorText returns nil for selectors that select everything. The text of a selector that selects nothing is empty.
func selectorText[S interface {
	comparable
	Empty() bool
	String() string
}](s S) *string {
	var none S
	if s == none || s.Empty() {
		return nil
	}
	return new(s.String())
}
