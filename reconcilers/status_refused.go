// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/conditions"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/servedstatus"
)

// mendConditions makes the conditions of a resource valid: the API server refuses the whole status for one that is not.
func (s *statusType) mendConditions(obj client.Object) {
	s.changeConditions(obj, func(list *[]metav1.Condition) {
		for i, c := range *list {
			(*list)[i] = conditions.Mend(c)
		}
	})
}

// without returns a copy of a resource whose status has the original value of each field that the API server refused,
// and the names of these fields. It returns no names if the refusal is about the status as a whole, or about something
// else.
func (s *statusType) without(refusal error, obj, original client.Object) (client.Object, []string, error) {
	content, err := contentOf(obj)
	if err != nil {
		return nil, nil, err
	}
	before, err := contentOf(original)
	if err != nil {
		return nil, nil, err
	}
	status, _ := content["status"].(map[string]any)
	stored, _ := before["status"].(map[string]any)
	names := refusedFields(refusal)
	if isTooLarge(refusal) {
		names = largeFields(status, stored)
	}
	// Restore conditions from the last to the first, because their indexes change.
	slices.SortFunc(names, func(a, b refusedField) int { return b.index - a.index })
	texts := []string{}
	for _, name := range names {
		if text := name.restore(status, stored); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil, nil, nil
	}
	slices.Sort(texts)
	reduced := empty.Like(obj)
	return reduced, texts, runtime.DefaultUnstructuredConverter.FromUnstructured(content, reduced)
}

func contentOf(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		obj, ok := u.DeepCopyObject().(runtime.Unstructured)
		if !ok {
			return nil, fmt.Errorf("a copy of %T is not of the same type", u)
		}
		return obj.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// refusedField is a field of a status, or a condition, that the API server refused.
type refusedField struct {
	name string
	// index is that of a condition, or -1.
	index int
}

// refusedFields returns the fields of the status that an Invalid error names, for example conditions and 1 for
// status.conditions[1].reason.
func refusedFields(refusal error) []refusedField {
	status := apierrs.APIStatus(nil)
	if !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	fields := []refusedField{}
	for _, cause := range status.Status().Details.Causes {
		path, ok := strings.CutPrefix(cause.Field, "status.")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(path, ".")
		field := refusedField{name: name, index: -1}
		if at := strings.IndexByte(name, '['); at >= 0 {
			field.name = name[:at]
			if index, err := strconv.Atoi(strings.TrimSuffix(name[at+1:], "]")); err == nil && field.name == "conditions" {
				field.index = index
			}
		}
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// largeFields returns the changed fields of a status that may be too large: all but the conditions and the observed
// generation.
func largeFields(status, stored map[string]any) []refusedField {
	const small = 1024
	fields := []refusedField{}
	for name, value := range status {
		encoded, err := json.Marshal(value)
		if name != "conditions" && err == nil && len(encoded) > small && !reflect.DeepEqual(value, stored[name]) {
			fields = append(fields, refusedField{name, -1})
		}
	}
	return fields
}

// restore sets the field of a status to the stored value, and returns its name, or "" if it has that value.
func (f refusedField) restore(status, stored map[string]any) string {
	if f.index < 0 {
		before, ok := stored[f.name]
		if reflect.DeepEqual(status[f.name], before) {
			return ""
		}
		if delete(status, f.name); ok {
			status[f.name] = before
		}
		return "status." + f.name
	}
	list, _ := status[f.name].([]any)
	if f.index >= len(list) {
		return ""
	}
	refused, _ := list[f.index].(map[string]any)
	before, _ := stored[f.name].([]any)
	at := slices.IndexFunc(before, func(c any) bool {
		other, _ := c.(map[string]any)
		return other["type"] == refused["type"]
	})
	if at < 0 {
		status[f.name] = slices.Delete(list, f.index, f.index+1)
	} else {
		list[f.index] = before[at]
	}
	return fmt.Sprintf("status.conditions[type=%v]", refused["type"])
}

// errNoStatus is the cause of an error about a kind whose status cannot be written.
var errNoStatus = fmt.Errorf("the object exists, but its status does not: %w", servedstatus.ErrMissing)

// explainNotFound tells why a status is not found. The error is the same if the resource was deleted, and if its kind
// has no status subresource. It returns nil for a resource that was deleted.
func (r *ResourceReconciler[T]) explainNotFound(ctx context.Context, resource T, notFound error) error {
	reader := client.Reader(r.Config.Client)
	if r.Config.APIReader != nil {
		reader = r.Config.APIReader
	}
	live := empty.Like(resource)
	switch err := reader.Get(ctx, client.ObjectKeyFromObject(resource), live); {
	case apierrs.IsNotFound(err), err == nil && live.GetUID() != resource.GetUID():
		return nil
	case err != nil:
		return notFound
	}
	return fmt.Errorf("%w: %w", notFound, errNoStatus)
}
