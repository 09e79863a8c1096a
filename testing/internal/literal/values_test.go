// SPDX-License-Identifier: Apache-2.0

package literal_test

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	"trueup.dev/testing/internal/literal"
	"trueup.dev/tracker"
)

var (
	now   = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	later = metav1.NewTime(now.Add(time.Hour))
)

// values returns values by what is special about them. Their literals are Go expressions that are equal to them.
func values() map[string]any {
	all := map[string]any{}
	for _, group := range []map[string]any{
		scalars(), composites(), objects(), expectations(),
	} {
		for name, value := range group {
			if _, ok := all[name]; ok {
				panic(name)
			}
			all[name] = value
		}
	}
	return all
}

func scalars() map[string]any {
	return map[string]any{
		"nil":                      nil,
		"bool":                     true,
		"string":                   "text",
		"empty string":             "",
		"string with quotes":       `say "hello" \o/`,
		"string of many lines":     "first\n\tsecond\n\nlast",
		"string with newline":      "first\n",
		"strings with backquotes":  "use `code`\nand \"quotes\"\n",
		"string with backquote":    "use `code`",
		"carriage return":          "first\r\nsecond\r\n",
		"string that is not UTF-8": "\xff\x00\n\u2028\uFEFF\x7f",
		"named string":             literal.Text("text"),
		"int":                      -3,
		"int8":                     int8(-3),
		"int64":                    int64(math.MinInt64),
		"uint64":                   uint64(math.MaxUint64),
		"byte":                     byte('a'),
		"rune":                     'a',
		"float64":                  1.0,
		"float64, small":           1.25e-10,
		"float64, large":           1e21,
		"float32":                  float32(0.1),
		"infinity":                 []any{math.Inf(1), math.Inf(-1), float32(math.Inf(1))},
		"not a number":             math.NaN(),
		"complex128":               complex(1, -2),
		"complex64":                complex64(complex(1, -2)),
		"duration":                 90 * time.Minute,
		"duration of one unit":     time.Second,
		"durations": []time.Duration{
			0, 1, 2 * time.Hour, -3 * time.Millisecond, 1001 * time.Microsecond, 1500,
		},
		"time":        time.Date(2026, 2, 28, 13, 4, 5, 6, time.FixedZone("somewhere", 3600)),
		"time, early": time.UnixMilli(1500),
		"time, zero":  time.Time{},
		"quantity":    resource.MustParse("1500m"),
		"int or string": []intstr.IntOrString{
			intstr.FromInt32(80), intstr.FromString("http"), intstr.FromString("50%"),
		},
		"uid":              types.UID("f3c6"),
		"condition status": []any{metav1.ConditionTrue, corev1.ConditionUnknown, metav1.ConditionStatus("Perhaps")},
		"error":            errors.New(`no "such" thing`),
		"API error":        apierrors.NewNotFound(corev1.Resource("configmaps"), "a"),
	}
}

func composites() map[string]any {
	text := literal.Text("text")
	return map[string]any{
		"pointers": []any{
			new("x"), new(int32(3)), new(3), new(true), new(1.0), new(literal.Text("t")), new(2 * time.Second), new(new("x")),
			new(any("x")), literal.Pointer(new(3)),
		},
		"pointers of a type": struct {
			S *string
			I *int32
			P *corev1.PullPolicy
			T *metav1.Time
			D *metav1.Duration
			Q *resource.Quantity
			L *[]string
			M *map[string]string
			B *[]byte
			A *[2]int
			O *intstr.IntOrString
			N literal.Pointer
			Z **string
		}{
			new("x"), new(int32(3)), new(corev1.PullAlways), new(now), &metav1.Duration{Duration: time.Minute},
			new(resource.MustParse("1Gi")), &[]string{"a"},
			&map[string]string{"a": "b"}, new([]byte("x")), &[2]int{1}, new(intstr.FromString("http")), new(3),
			new((*string)(nil)),
		},
		"nils of a type": []any{
			(*string)(nil), (*corev1.ConfigMap)(nil), []string(nil), map[string]int(nil), literal.Pointer(nil),
			(func(int) string)(nil), (chan int)(nil), literal.Bytes(nil), (*metav1.Time)(nil), error(nil),
		},
		"bytes": struct {
			Raw   json.RawMessage
			Plain []byte
			Named literal.Bytes
			Empty []byte
			Any   any
		}{json.RawMessage(`{"a":1}`), []byte("\x00\x01"), literal.Bytes("x"), []byte{}, json.RawMessage(`["b"]`)},
		"slices": []any{
			[]string{"a", "b"}, []string{}, [][]int{{1}, nil, {}}, []any{1, "a", nil}, []*int{new(1), nil}, [3]string{"a"},
		},
		"slice of structs":  []literal.Embedded{{}, {Embedded: 1}},
		"slice of pointers": []*literal.Embedded{{}, nil, {Embedded: 1}},
		"slice of named pointers": []literal.Pointer{
			new(1), nil,
		},
		"map with numbers as keys": map[int]string{10: "ten", 9: "nine", -1: "less"},
		"map with other keys": []any{
			map[float64]bool{10: true, 9.5: false},
			map[uint8]bool{10: true, 9: true},
			map[bool]int{true: 1, false: 0},
			map[any]int{"a": 1, 1: 2, literal.Text("a"): 3},
			map[types.NamespacedName]int{{Namespace: "b", Name: "x"}: 1, {Namespace: "a", Name: "y"}: 2},
			map[[1]string]int{{"b"}: 1, {"a"}: 2},
		},
		"map of structs":  map[literal.Text]literal.Embedded{"a": {Embedded: 1}, "b": {}},
		"map of pointers": map[string]*literal.Embedded{"a": {Embedded: 1}, "b": nil},
		"named map":       labels.Set{"a": "b"},
		"struct":          struct{ A, B int }{1, 0},
		"struct with tags": struct {
			literal.Embedded
			A []byte         `json:"a,omitempty"`
			F map[string]any `yaml:"f"`
		}{A: []byte("x")},
		"generic type": []any{
			literal.Pair[string, int]{Key: "a", Value: 1},
			&literal.Pair[types.NamespacedName, *corev1.ConfigMap]{Value: &corev1.ConfigMap{}},
			literal.Pair[literal.Text, literal.Pair[string, []corev1.Pod]]{},
		},
		"nodes": literal.WithHidden(literal.Node{
			Embedded: literal.Embedded{Embedded: 1}, Text: &text, Name: "root", Any: &literal.Node{Name: "any"},
			Next:  &literal.Node{Name: "next"},
			Nodes: []*literal.Node{{Name: "a"}}, ByName: map[string]*literal.Node{"b": {Name: "b"}},
		}),
		"unstructured content": map[string]any{
			"string": "a", "int": int64(3), "float": 1.0, "bool": false, "nil": nil, "list": []any{
				int64(1), map[string]any{"a": "b"},
			}, "map": map[string]any{},
		},
	}
}

func objects() map[string]any {
	return map[string]any{
		"object": &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "web", Name: "blog", CreationTimestamp: now, DeletionTimestamp: &later, UID: "u",
				Finalizers: []string{"f"},
			},
			Data:       map[string]string{"b": "2", "a": "1"},
			BinaryData: map[string][]byte{"binary": {0, 1}},
		},
		"object of a user": &fixture.Resource{
			ObjectMeta: metav1.ObjectMeta{Name: "blog", Labels: map[string]string{"app": "blog"}},
			Spec:       fixture.ResourceSpec{Fields: map[string]string{"a": "1"}},
			Status: fixture.ResourceStatus{
				Status: apis.Status{
					Conditions: []metav1.Condition{
						{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Unix(1, 0)},
					},
				},
				Size: new(resource.MustParse("10Gi")),
			},
		},
		"duck": fixture.NewDuck("web", "blog"),
		"metadata of an object": &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"},
		},
		"list": &corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}},
		"unstructured": unstructuredOf(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"},
		}),
		"workload": &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Name: "blog", OwnerReferences: []metav1.OwnerReference{{Kind: "Resource", Controller: new(true)}},
			},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(3)),
				Selector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"blog"}},
					},
				},
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:  "web",
					Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
					Resources: corev1.ResourceRequirements{
						Limits: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("100m"), "example.com/gpu": resource.MustParse("1"),
						},
					},
					LivenessProbe: &corev1.Probe{
						ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}},
					},
					Command: []string{"sh", "-c", "set -e\nserve --port 80\n"},
				}}}},
			},
		},
		"role": &rbacv1.ClusterRole{
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, Resources: []string{"configmaps"}}},
		},
		"times": &corev1.Event{
			EventTime: metav1.NewMicroTime(now.Time), FirstTimestamp: metav1.Unix(1, 5), LastTimestamp: metav1.Time{},
		},
		"raw JSON": &apiextensionsv1.JSON{Raw: []byte(`{"a":"b"}`)},
		"raw extension": runtime.RawExtension{
			Raw: []byte(`{}`), Object: &corev1.Secret{Type: corev1.SecretTypeOpaque},
		},
		"managed fields by value": []any{*metav1.NewFieldsV1(`{}`), (*metav1.FieldsV1)(nil), []*metav1.FieldsV1{nil}},
		"managed fields":          metav1.ManagedFieldsEntry{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)},
		"apply configuration": corev1ac.ConfigMap("blog", "web").WithLabels(map[string]string{"a": "b"}).
			WithData(map[string]string{"k": "v"}),
		"apply configuration of a workload": appsv1ac.Deployment("blog", "web").
			WithOwnerReferences(metav1ac.OwnerReference().WithKind("Resource").WithController(true)).
			WithFinalizers("example.com/a", "example.com/b").
			WithSpec(appsv1ac.DeploymentSpec().
				WithReplicas(3).
				WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"a": "b"})).
				WithTemplate(corev1ac.PodTemplateSpec().
					WithLabels(map[string]string{"a": "b"}).
					WithSpec(corev1ac.PodSpec().WithContainers(
						corev1ac.Container().WithName("web").WithResources(corev1ac.ResourceRequirements().WithLimits(corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("100m"),
						})),
						corev1ac.Container().WithName("side").WithCommand("sh", "-c", "run\nexit\n").WithLivenessProbe(
							corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPort(intstr.FromInt32(80))).WithPeriodSeconds(5),
						),
					)),
				),
			),
		"apply configuration of a cluster": corev1ac.Namespace("web").WithLabels(map[string]string{"a": "b"}),
		"apply configuration without a namespace": (&corev1ac.ConfigMapApplyConfiguration{}).
			WithKind("ConfigMap").WithAPIVersion("v1").WithName("a"),
		"apply configuration without a name":     &corev1ac.ConfigMapApplyConfiguration{Data: map[string]string{"a": "b"}},
		"apply configuration of another kind":    corev1ac.ConfigMap("a", "b").WithKind("Secret"),
		"apply configuration of another version": corev1ac.ConfigMap("a", "b").WithAPIVersion("v2"),
		"apply configuration with an empty map": func() any {
			ac := corev1ac.Secret("a", "b")
			ac.Data = map[string][]byte{}
			return ac
		}(),
		"apply configuration with empty labels": func() any {
			ac := corev1ac.ConfigMap("a", "b")
			ac.Labels = map[string]string{}
			return ac
		}(),
		"nil apply configuration": rtesting.ApplyRef{ApplyConfiguration: (*corev1ac.PodApplyConfiguration)(nil)},
		"unstructured apply configuration": client.ApplyConfigurationFromUnstructured(
			unstructuredOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}),
		),
	}
}

func expectations() map[string]any {
	selecting := rtesting.TrackRequest{
		Tracker: types.NamespacedName{Namespace: "web", Name: "blog"}, TrackedReference: tracker.Reference{
			Kind: "ConfigMap", Selector: parsedLabels("app in (a,b),!c"),
		},
	}
	return map[string]any{
		"result":           reconcilers.Result{RequeueAfter: 90 * time.Second, Priority: new(1)},
		"request":          reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "web", Name: "blog"}},
		"track":            rtesting.CreateTrackRequest("apps", "Deployment", "web", "theme").By("web", "blog"),
		"track by label":   selecting,
		"deprecated track": rtesting.TrackRequest{Tracked: tracker.Key{NamespacedName: types.NamespacedName{Name: "a"}}}, //nolint:staticcheck // deprecated, but still in use
		"event": rtesting.Event{
			TypeMeta: metav1.TypeMeta{
				APIVersion: "v1", Kind: "ConfigMap",
			}, NamespacedName: types.NamespacedName{Namespace: "web", Name: "blog"},
			Related: &corev1.ObjectReference{Name: "r"}, Type: corev1.EventTypeWarning, Reason: "Failed",
			Message: `Failed to create ConfigMap "blog"`,
		},
		"event of another type": rtesting.Event{Type: "Strange"},
		"patch": rtesting.PatchRef{
			Group: "apps", Kind: "Deployment", PatchType: types.MergePatchType,
			Patch: []byte(`{"metadata":{"finalizers":["f"]}}`),
		},
		"patch types": []types.PatchType{
			types.JSONPatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType, "other",
		},
		"delete": rtesting.DeleteRef{Kind: "ConfigMap", Namespace: "web", Name: "blog"},
		"delete collections": []rtesting.DeleteCollectionRef{
			{Labels: labels.Everything(), Fields: fields.Everything()},
			{Labels: labels.Nothing(), Fields: fields.Nothing()},
			{
				Labels: labels.SelectorFromSet(labels.Set{"b": "2", "a": "1"}),
				Fields: fields.OneTermEqualSelector("metadata.name", "a"),
			},
			{Labels: parsedLabels("a"), Fields: fields.ParseSelectorOrDie(`a!=1,b=x\,y`)},
			{Labels: parsedLabels("a==1,b>2"), Fields: fields.AndSelectors(fields.OneTermEqualSelector("a", "1"))},
			{Labels: labels.ValidatedSetSelector{"a": "1"}, Fields: fields.OneTermNotEqualSelector("a", "1")},
		},
		"apply":       rtesting.ApplyRef{Kind: "ConfigMap", Name: "a", ApplyConfiguration: corev1ac.ConfigMap("a", "b")},
		"subresource": rtesting.SubResourceRef{Verb: "update", Kind: "Deployment", SubResource: "scale", Body: &corev1.Pod{}},
		"webhook response": admission.Response{
			Patches: []jsonpatch.Operation{
				jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{"a": "b"}),
			},
			AdmissionResponse: admissionv1.AdmissionResponse{
				Allowed: true, Warnings: []string{"w"}, Result: &metav1.Status{Code: 403, Message: "m"},
			},
		},
	}
}

func unstructuredOf(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

func parsedLabels(text string) labels.Selector {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return selector
}
