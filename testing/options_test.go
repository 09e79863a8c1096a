// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

func unstructuredOf(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

func withMeta(meta metav1.ObjectMeta) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta}
}

func withMetadata(metadata map[string]any) *unstructured.Unstructured {
	return unstructuredOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

func withCondition(condition metav1.Condition) *fixture.Resource {
	r := &fixture.Resource{}
	r.Status.Conditions = []metav1.Condition{condition}
	return r
}

func withUnstructuredCondition(condition map[string]any) *unstructured.Unstructured {
	return unstructuredOf(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
}

func templateOf(meta metav1.ObjectMeta) *appsv1.Deployment {
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: meta}}}
}

var (
	now   = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	later = metav1.NewTime(now.Add(time.Hour))
)

// Each option ignores the one difference, without it there is one.
func TestIgnored(t *testing.T) {
	tests := map[string]struct {
		option cmp.Option
		a, b   any
	}{
		"transition of a condition": {
			IgnoreLastTransitionTime,
			withCondition(metav1.Condition{Type: "Ready", LastTransitionTime: now}), withCondition(metav1.Condition{
				Type: "Ready", LastTransitionTime: later,
			}),
		},
		"first transition of a condition": {
			IgnoreLastTransitionTime,
			withCondition(metav1.Condition{Type: "Ready"}), withCondition(metav1.Condition{
				Type: "Ready", LastTransitionTime: later,
			}),
		},
		"transition of a condition that has a pointer": {
			IgnoreLastTransitionTime,
			&struct{ LastTransitionTime *metav1.Time }{}, &struct{ LastTransitionTime *metav1.Time }{&now},
		},
		"transition of an unstructured condition": {
			IgnoreLastTransitionTime,
			withUnstructuredCondition(map[string]any{"lastTransitionTime": "2026-01-02T03:04:05Z"}),
			withUnstructuredCondition(map[string]any{"lastTransitionTime": nil}),
		},
		"first transition of an unstructured condition": {
			IgnoreLastTransitionTime,
			withUnstructuredCondition(map[string]any{}), withUnstructuredCondition(map[string]any{
				"lastTransitionTime": "2026-01-02T03:04:05Z",
			}),
		},
		"kind": {
			IgnoreTypeMeta,
			&corev1.ConfigMap{}, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}},
		},
		"kind of an item": {
			IgnoreTypeMeta,
			[]corev1.ConfigMap{{}},
			[]corev1.ConfigMap{{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}}},
		},
		"creation": {
			IgnoreCreationTimestamp,
			withMeta(metav1.ObjectMeta{Name: "a"}), withMeta(metav1.ObjectMeta{Name: "a", CreationTimestamp: now}),
		},
		"creation of a template": {
			IgnoreCreationTimestamp,
			templateOf(metav1.ObjectMeta{}), templateOf(metav1.ObjectMeta{CreationTimestamp: now}),
		},
		"unstructured creation": {
			IgnoreCreationTimestamp,
			withMetadata(map[string]any{"name": "a"}), withMetadata(map[string]any{
				"name": "a", "creationTimestamp": "2026-01-02T03:04:05Z",
			}),
		},
		"unstructured creation that is null": {
			IgnoreCreationTimestamp,
			withMetadata(map[string]any{"name": "a"}), withMetadata(map[string]any{"name": "a", "creationTimestamp": nil}),
		},
		"unstructured creation of a template": {
			IgnoreCreationTimestamp,
			unstructuredOf(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{}}}}),
			unstructuredOf(map[string]any{
				"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"creationTimestamp": nil}}},
			}),
		},
		"resource version": {
			IgnoreResourceVersion,
			withMeta(metav1.ObjectMeta{ResourceVersion: "999"}), withMeta(metav1.ObjectMeta{ResourceVersion: "1000"}),
		},
		"unstructured resource version": {
			IgnoreResourceVersion,
			withMetadata(map[string]any{"resourceVersion": "999"}), withMetadata(map[string]any{"resourceVersion": "1000"}),
		},
		"a label selector that selects everything": {
			NormalizeLabelSelector,
			tracker.Reference{},
			tracker.Reference{Selector: labels.Everything()},
		},
		"label selectors made in different ways": {
			NormalizeLabelSelector,
			tracker.Reference{Selector: labels.ValidatedSetSelector{"a": "1", "b": "2"}},
			tracker.Reference{Selector: parsedLabels("b=2,a=1")},
		},
		"a field selector that selects everything": {
			NormalizeFieldSelector,
			struct{ Fields fields.Selector }{},
			struct{ Fields fields.Selector }{fields.Everything()},
		},
		"field selectors made in different ways": {
			NormalizeFieldSelector,
			struct{ Fields fields.Selector }{fields.OneTermEqualSelector("a", "1")},
			struct{ Fields fields.Selector }{fields.AndSelectors(fields.ParseSelectorOrDie("a=1"))},
		},
		"apply configurations of different Go types": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("a", "ns").WithData(map[string]string{"k": "v"})},
			ApplyRef{ApplyConfiguration: client.ApplyConfigurationFromUnstructured(unstructuredOf(map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
					"name": "a", "namespace": "ns",
				}, "data": map[string]any{"k": "v"},
			}))},
		},
		"no apply configuration": {
			NormalizeApplyConfiguration,
			ApplyRef{},
			ApplyRef{ApplyConfiguration: (*corev1ac.ConfigMapApplyConfiguration)(nil)},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if reflect.DeepEqual(tt.a, tt.b) {
				t.Fatal("there is nothing to ignore")
			}
			if diff := cmp.Diff(tt.a, tt.b, tt.option, reconcilers.IgnoreAllUnexported); diff != "" {
				t.Errorf("difference:\n%s", diff)
			}
			if diff := cmp.Diff(tt.b, tt.a, tt.option, reconcilers.IgnoreAllUnexported); diff != "" {
				t.Errorf("difference the other way round:\n%s", diff)
			}
		})
	}
}

// Each option leaves all else alone.
func TestNotIgnored(t *testing.T) {
	tests := map[string]struct {
		option cmp.Option
		a, b   any
	}{
		"reason of a condition": {
			IgnoreLastTransitionTime,
			withCondition(metav1.Condition{
				Reason: "A", LastTransitionTime: now,
			}), withCondition(metav1.Condition{Reason: "B", LastTransitionTime: now}),
		},
		"reason of an unstructured condition": {
			IgnoreLastTransitionTime,
			withUnstructuredCondition(map[string]any{"reason": "A"}), withUnstructuredCondition(map[string]any{"reason": "B"}),
		},
		"data that has a key of that name": {
			IgnoreLastTransitionTime,
			map[string]string{"lastTransitionTime": "A"},
			map[string]string{"lastTransitionTime": "B"},
		},
		"unstructured kind": {
			IgnoreTypeMeta,
			unstructuredOf(map[string]any{"kind": "A"}), unstructuredOf(map[string]any{"kind": "B"}),
		},
		"unstructured API version": {
			IgnoreTypeMeta,
			unstructuredOf(map[string]any{"apiVersion": "a/v1"}), unstructuredOf(map[string]any{"apiVersion": "a/v2"}),
		},
		"kind of a reference": {
			IgnoreTypeMeta,
			corev1.ObjectReference{Kind: "A"},
			corev1.ObjectReference{Kind: "B"},
		},
		"deletion": {
			IgnoreCreationTimestamp,
			withMeta(metav1.ObjectMeta{}), withMeta(metav1.ObjectMeta{DeletionTimestamp: &now}),
		},
		"creation, elsewhere": {
			IgnoreCreationTimestamp,
			unstructuredOf(map[string]any{"spec": map[string]any{"creationTimestamp": "A"}}),
			unstructuredOf(map[string]any{"spec": map[string]any{"creationTimestamp": "B"}}),
		},
		"creation of a type of its own": {
			IgnoreCreationTimestamp,
			struct{ CreationTimestamp string }{"A"},
			struct{ CreationTimestamp string }{"B"},
		},
		"metadata of items": {
			IgnoreResourceVersion,
			withMetadata(map[string]any{
				"resourceVersion": "1", "name": "a",
			}), withMetadata(map[string]any{"resourceVersion": "1", "name": "b"}),
		},
		"resource version of a list": {
			IgnoreResourceVersion,
			corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}},
			corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "2"}},
		},
		"a label selector that selects nothing": {
			NormalizeLabelSelector,
			tracker.Reference{Selector: labels.Everything()},
			tracker.Reference{Selector: labels.Nothing()},
		},
		"label selectors": {
			NormalizeLabelSelector,
			tracker.Reference{Selector: parsedLabels("a=1")},
			tracker.Reference{Selector: parsedLabels("a!=1")},
		},
		"a field selector that selects nothing": {
			NormalizeFieldSelector,
			struct{ Fields fields.Selector }{fields.Everything()},
			struct{ Fields fields.Selector }{fields.Nothing()},
		},
		"field selectors": {
			NormalizeFieldSelector,
			struct{ Fields fields.Selector }{fields.OneTermEqualSelector("a", "1")},
			struct{ Fields fields.Selector }{fields.OneTermEqualSelector("a", "2")},
		},
		"apply configurations": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("a", "ns")},
			ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("b", "ns")},
		},
		"an apply configuration and none": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("a", "ns")},
			ApplyRef{},
		},
		"large numbers in apply configurations": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: numbered{Number: 1<<60 + 1}},
			ApplyRef{ApplyConfiguration: numbered{Number: 1 << 60}},
		},
		"an apply configuration that cannot be encoded": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: numbered{Err: errBroken}},
			ApplyRef{},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.a, tt.b, tt.option); diff == "" {
				t.Error("no difference")
			}
		})
	}
}

func parsedLabels(text string) labels.Selector {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return selector
}

var errBroken = errors.New("broken on purpose")

// numbered is an apply configuration with a number, unless it fails.
type numbered struct {
	Number int64
	Err    error
}

var _ runtime.ApplyConfiguration = numbered{}

func (numbered) IsApplyConfiguration() {}

func (n numbered) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"number":%d}`, n.Number), n.Err
}
