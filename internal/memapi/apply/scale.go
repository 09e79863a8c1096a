// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"trueup.dev/internal/memapi/kinds"
)

const scaleSubresource = "scale"

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scaled returns the managed fields of an object after a manager has written its scale. A manager that changes the
// number of replicas becomes the only owner of that field, in a separate entry without a time.
func (a *Applier) scaled(
	k *kinds.Kind, live, updated client.Object, manager string,
) ([]metav1.ManagedFieldsEntry, error) {
	path := strings.Split(strings.TrimPrefix(k.Scale.SpecReplicas, "."), ".")
	elements := make([]any, len(path))
	for i, name := range path {
		elements[i] = name
	}
	handler := managedfields.NewScaleHandler(
		live.GetManagedFields(), k.GroupVersion(), managedfields.ResourcePathMappings{
			k.GroupVersion().String(): fieldpath.MakePathOrDie(elements...),
		})
	entries, err := handler.ToSubresource()
	if err != nil {
		return nil, err
	}
	before, err := scaleOf(live, entries, path)
	if err != nil {
		return nil, err
	}
	after, err := scaleOf(updated, entries, path)
	if err != nil {
		return nil, err
	}
	fields, err := scaleFields()
	if err != nil {
		return nil, err
	}
	return handler.ToParent(fields.UpdateNoErrors(before, after, manager).(metav1.Object).GetManagedFields())
}

// scaleOf returns the scale subresource of an object.
func scaleOf(obj client.Object, entries []metav1.ManagedFieldsEntry, path []string) (*autoscalingv1.Scale, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	replicas, _, err := unstructured.NestedInt64(content, path...)
	if err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(), ManagedFields: entries,
		},
		Spec: autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
	}
	scale.SetGroupVersionKind(scaleKind)
	return scale, nil
}

// scaleFields converts scales of all kinds. Scales have no schema, but contain no lists that would need one.
func scaleFields() (*managedfields.FieldManager, error) {
	version := scaleVersion{}
	fields, err := managedfields.NewDefaultFieldManager(
		managedfields.NewDeducedTypeConverter(), version, version, version, scaleKind, scaleKind.GroupVersion(),
		scaleSubresource, nil)
	if err != nil {
		return nil, fmt.Errorf("managed fields of a scale: %w", err)
	}
	return fields, nil
}

// scaleVersion creates scales.
type scaleVersion struct{ versions }

func (scaleVersion) New(schema.GroupVersionKind) (runtime.Object, error) {
	scale := &autoscalingv1.Scale{}
	scale.SetGroupVersionKind(scaleKind)
	return scale, nil
}
