// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/resource"
)

var (
	testConfigMaps = resource.Kind{
		Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{}),
	}
	testNodes = resource.Kind{
		Schema: resource.NewSimpleSchema(
			"", "v1", &corev1.Node{}, &corev1.NodeList{}, resource.WithScope(resource.ClusterScope),
		),
	}
)

func TestOptions_Problems(t *testing.T) {
	for name, tc := range map[string]struct {
		kind    resource.Kind
		options Options
		want    []string
	}{
		"none": {kind: testConfigMaps},
		"all fine": {
			kind: testConfigMaps,
			options: Options{
				Namespaces: []string{"a"}, LabelFilters: []string{"a", "b in (c)"}, FieldSelectors: []string{"d=e"},
			},
		},
		"no kind": {want: []string{"Schema"}},
		"nodes": {
			kind: testNodes, options: Options{Namespaces: []string{"a"}},
			want: []string{"informer of Node.v1: the kind is cluster-scoped"},
		},
		"everything": {
			kind: testConfigMaps,
			options: Options{
				Namespaces: []string{"a", "", "a", "B"}, LabelFilters: []string{"a", "a b", " "}, FieldSelectors: []string{
					"c", "", "=x", "d=e",
				}, CacheResyncInterval: -1,
			},
			want: []string{
				"informer of ConfigMap.v1: Namespaces[1]: must not be empty", `Namespaces[2]: "a" is a duplicate of Namespaces[0]`,
				`Namespaces[3]: "B" is not the name of a namespace`,
				`LabelFilters[1]: "a b" is not a label selector`, "LabelFilters[2]: must not be empty",
				`FieldSelectors[0]: "c" is not a field selector`, "FieldSelectors[1]: must not be empty",
				`FieldSelectors[2]: "=x" does not name a field`,
				"CacheResyncInterval: must not be negative, got -1ns",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.options.selection(tc.kind)
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestOptions_Selection(t *testing.T) {
	s, err := Options{
		MetadataOnly: true, LabelFilters: []string{"a=b", "c"}, FieldSelectors: []string{"d=e", "f!=g"},
	}.selection(testConfigMaps)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.object.(*metav1.PartialObjectMetadata); !ok ||
		s.object.GetObjectKind().GroupVersionKind().Kind != "ConfigMap" {
		t.Errorf("the object is %v", s.object)
	}
	got := []string{s.labels.String(), s.fields.String(), s.resync.String()}
	if diff := cmp.Diff([]string{"a=b,c", "d=e,f!=g", "10h0m0s"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRoute(t *testing.T) {
	typed := guard.NewForm(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{})
	partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	metadata := guard.NewForm(corev1.SchemeGroupVersion.WithKind("ConfigMap"), partial)
	for name, tc := range map[string]struct {
		form    guard.Form
		is, not []client.Object
	}{
		"Go type": {form: typed, is: []client.Object{&corev1.ConfigMap{}}, not: []client.Object{partial, &corev1.Secret{}}},
		"metadata": {
			form: metadata, is: []client.Object{partial},
			not: []client.Object{&corev1.ConfigMap{}, &metav1.PartialObjectMetadata{}},
		},
	} {
		r := route{form: tc.form, scheme: scheme.Scheme}
		for _, obj := range tc.is {
			if !r.is(obj) {
				t.Errorf("%s: %T belongs to another informer", name, obj)
			}
		}
		for _, obj := range tc.not {
			if r.is(obj) {
				t.Errorf("%s: %T belongs to this informer", name, obj)
			}
		}
		if got, want := r.isKind(corev1.SchemeGroupVersion.WithKind("ConfigMap")), name == "Go type"; got != want {
			t.Errorf("%s: the kind belongs to this informer: %t", name, got)
		}
	}
	if r := (route{form: typed, scheme: scheme.Scheme}); !r.is(&corev1.ConfigMapList{}) || r.is(&corev1.SecretList{}) {
		t.Error("lists of different kinds are not distinguished")
	}
}

func TestCustomCacheSupplier_Errors(t *testing.T) {
	failure := errors.New("no store")
	supply := CustomCacheSupplier(func(resource.Kind) (Store, error) { return nil, failure })
	if _, err := supply(testConfigMaps, nil, Options{}); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if _, err := NewCustomCache(testConfigMaps, nil, nil, Options{}); err == nil {
		t.Error("an informer without a store: no error")
	}
	for name, supplier := range map[string]Supplier{
		"default": DefaultSupplier, "metadata": MetadataOnlySupplier,
	} {
		if _, err := supplier(testConfigMaps, nil, Options{CacheResyncInterval: -time.Second}); err == nil {
			t.Errorf("%s: invalid options: no error", name)
		}
	}
}
