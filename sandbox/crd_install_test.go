// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

func dynamicClient(t *testing.T, s *Sandbox) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func crdClient(t *testing.T, s *Sandbox) dynamic.ResourceInterface {
	t.Helper()
	return dynamicClient(t, s).Resource(apiextensionsv1.SchemeGroupVersion.WithResource(crdResourcesName))
}

func resource(version, kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: version, Resource: strings.ToLower(kind) + "s"}
}

func TestInstallCRDsFromAllSources(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"file.yaml":         "---\n" + newCRDText(t, "File") + "---\n" + newCRDText(t, "Second"),
		"directory/in.json": newCRDText(t, "Directory"),
	})
	env := ForTest(t, TestOptions{CRDs: []any{
		newCRD("Object"),
		[]*apiextensionsv1.CustomResourceDefinition{newCRD("Element")},
		filepath.Join(dir, "file.yaml"),
		filepath.Join(dir, "directory"),
		fstest.MapFS{"crds/embedded.yml": {Data: []byte(newCRDText(t, "Embedded"))}},
	}})
	client := dynamicClient(t, env.Sandbox)
	for _, kind := range []string{"Object", "Element", "File", "Second", "Directory", "Embedded"} {
		// Every served version accepts its first request.
		for _, version := range []string{"v1", "v1beta1"} {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/" + version, "kind": kind, "metadata": map[string]any{"name": version},
			}}
			if _, err := client.Resource(resource(version, kind)).Namespace(env.Namespace).Create(
				t.Context(), object, metav1.CreateOptions{},
			); err != nil {
				t.Errorf("creating a %s of %s: %v", kind, version, err)
			}
		}
		_, err := client.Resource(resource("v1alpha1", kind)).List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("listing a version of %s that is not served: %v", kind, err)
		}
	}
}

func TestInstallCRDsAgain(t *testing.T) {
	env := ForTest(t, TestOptions{CRDs: []any{newCRD("Again")}})
	crds := crdClient(t, env.Sandbox)
	get := func() *unstructured.Unstructured {
		t.Helper()
		crd, err := crds.Get(t.Context(), "agains.example.com", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return crd
	}
	first := get()
	if err := env.InstallCRDs(t.Context(), newCRD("Again")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Object, get().Object); diff != "" {
		t.Errorf("installing an unchanged definition changed it (-first +second):\n%s", diff)
	}

	changed := newCRD("Again")
	changed.Spec.Versions[2].Served = true
	// Fields that only the API server may write are ignored in every source.
	changed.ResourceVersion, changed.UID, changed.Generation = "1", "x", 7
	if err := env.InstallCRDs(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if _, err := dynamicClient(t, env.Sandbox).Resource(resource("v1alpha1", "Again")).List(
		t.Context(), metav1.ListOptions{},
	); err != nil {
		t.Errorf("the version served since the update: %v", err)
	}
}

func TestInstallCRDsWhileTheOldOneIsDeleted(t *testing.T) {
	env := ForTest(t, TestOptions{CRDs: []any{newCRD("Leaving")}})
	crds := crdClient(t, env.Sandbox)
	// A finalizer keeps the definition terminating until the test has observed it.
	patch := []byte(`{"metadata": {"finalizers": ["example.com/hold", "customresourcecleanup.apiextensions.k8s.io"]}}`)
	if _, err := crds.Patch(
		t.Context(), "leavings.example.com", "application/merge-patch+json", patch, metav1.PatchOptions{},
	); err != nil {
		t.Fatal(err)
	}
	old, err := crds.Get(t.Context(), "leavings.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Delete(t.Context(), "leavings.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err = env.InstallCRDs(ctx, newCRD("Leaving"))
	if err == nil || !strings.Contains(err.Error(), "an earlier definition with the same name is still being deleted") {
		t.Errorf("got %v while the definition is deleted", err)
	}
	if _, err := crds.Patch(
		t.Context(), "leavings.example.com", "application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`),
		metav1.PatchOptions{},
	); err != nil {
		t.Fatal(err)
	}
	if err := env.InstallCRDs(t.Context(), newCRD("Leaving")); err != nil {
		t.Fatal(err)
	}
	again, err := crds.Get(t.Context(), "leavings.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if again.GetUID() == old.GetUID() || again.GetDeletionTimestamp() != nil {
		t.Errorf("got the old definition: %s, deleted %v", again.GetUID(), again.GetDeletionTimestamp())
	}
}

func TestInstallCRDsAtTheSameTime(t *testing.T) {
	env := ForTest(t, TestOptions{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := env.InstallCRDs(t.Context(), newCRD("Popular"), newCRD("Crowd")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestInstallCRDsErrors(t *testing.T) {
	env := ForTest(t, TestOptions{CRDs: []any{newCRD("Taken")}})
	dir := t.TempDir()
	taken := newCRD("Other")
	taken.Spec.Names.Kind = "Taken"
	unstructural := newCRD("Loose")
	for i := range unstructural.Spec.Versions {
		unstructural.Spec.Versions[i].Schema = nil
	}
	writeFiles(
		t,
		dir,
		map[string]string{
			"typo.yaml": newCRDText(t, "Fine") + "---\n" + strings.Replace(
				newCRDText(t, "Typo"), `"scope":`, `"scoop": "x", "scope":`, 1,
			),
		},
	)
	cases := map[string]struct {
		source any
		want   []string
	}{
		"a field that does not exist": {
			filepath.Join(dir, "typo.yaml"),
			[]string{"typo.yaml: document 2 (typos.example.com): ", "scoop"},
		},
		"a name that is taken": {
			taken,
			[]string{
				"source 1 (others.example.com): ",
				context.DeadlineExceeded.Error(),
				"not established: ",
				"is already in use",
			},
		},
		"a schema that is missing": {
			unstructural,
			[]string{"source 1 (looses.example.com): ", "spec.versions[0].schema.openAPIV3Schema: Required value"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := env.InstallCRDs(ctx, c.source)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not contain %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestInstallCRDsWithoutAPI(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane of its own: with -short, the other errors of InstallCRDs are tested")
	}
	s := startReal(t, Options{})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	err := s.InstallCRDs(t.Context(), newCRD("Late"))
	if err == nil || !strings.Contains(err.Error(), "source 1 (lates.example.com)") ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got error %v, want a refused connection", err)
	}
}

func TestNotEstablished(t *testing.T) {
	condition := func(
		kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, message string,
	) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status, Message: message}
	}
	cases := map[string]struct {
		conditions []apiextensionsv1.CustomResourceDefinitionCondition
		want       string
	}{
		"no conditions": {nil, "not established yet"},
		"established": {[]apiextensionsv1.CustomResourceDefinitionCondition{
			condition(apiextensionsv1.NamesAccepted, "True", ""), condition(apiextensionsv1.Established, "True", ""),
		}, ""},
		"established in spite of a warning": {
			[]apiextensionsv1.CustomResourceDefinitionCondition{
				condition(apiextensionsv1.NonStructuralSchema, "True", "type is missing"),
				condition(apiextensionsv1.Established, "True", ""),
			},
			"",
		},
		"all reasons": {
			[]apiextensionsv1.CustomResourceDefinitionCondition{
				condition(apiextensionsv1.Established, "False", "not all names are accepted"),
				condition(apiextensionsv1.NamesAccepted, "False", "a name is taken"),
				condition(apiextensionsv1.NonStructuralSchema, "True", "type is missing"),
			},
			"not established: a name is taken; type is missing",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{
				Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: c.conditions},
			}
			if diff := cmp.Diff(c.want, notEstablished(crd)); diff != "" {
				t.Errorf("reason (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnserved(t *testing.T) {
	teapot := schema.GroupResource{Group: "example.com", Resource: "teapots"}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"a list":                          {nil, false},
		"the resource is unknown":         {apierrors.NewNotFound(teapot, ""), true},
		"its storage is being prepared":   {apierrors.NewTooManyRequests("storage is (re)initializing", 1), true},
		"the server is not ready":         {apierrors.NewServiceUnavailable("starting"), true},
		"a conversion webhook is missing": {apierrors.NewInternalError(context.DeadlineExceeded), false},
		"no answer":                       {context.DeadlineExceeded, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := unserved(c.err); got != c.want {
				t.Errorf("unserved(%v) is %t, want %t", c.err, got, c.want)
			}
		})
	}
}

func TestPoll(t *testing.T) {
	pending, final := errors.New("pending"), errors.New("final")
	type answer struct {
		done bool
		err  error
	}
	cases := map[string]struct {
		answers []answer
		cutOff  bool // ctx ends during the last try
		want    string
	}{
		"done immediately": {[]answer{{true, nil}}, false, ""},
		"done later":       {[]answer{{false, pending}, {true, nil}}, false, ""},
		"given up":         {[]answer{{false, pending}, {true, final}}, false, "final"},
		"out of time":      {[]answer{{false, pending}}, true, "out of time: pending"},
		"the error of an interrupted try is ignored": {
			[]answer{{false, pending}, {true, context.Canceled}},
			true,
			"out of time: pending",
		},
		"unless it is the only error": {[]answer{{true, context.Canceled}}, true, "context canceled"},
		"done in the last moment":     {[]answer{{false, pending}, {true, nil}}, true, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			tries := 0
			err := poll(ctx, func() (bool, error) {
				a := c.answers[tries]
				tries++
				if c.cutOff && tries == len(c.answers) {
					cancel(errors.New("out of time"))
				}
				return a.done, a.err
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want || tries != len(c.answers) {
				t.Errorf("after %d tries got error %q, want %q after %d", tries, got, c.want, len(c.answers))
			}
		})
	}
}
