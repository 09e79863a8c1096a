// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/sandbox"
	"trueup.dev/testing/internal/cluster"
)

// guide explains the rows of the table.
const guide = "../docs/test-kit-fidelity.md"

// patience is the time limit for asynchronous work of a server.
const patience = 30 * time.Second

// A trait is a row of the table in the guide.
type trait struct {
	feature string
	// fake, realistic and onCluster are the expected cells of the table.
	fake, realistic, onCluster string
	// observe returns the cell that is observed.
	observe func(w *place) string
}

// place is an API in which a trait is observed.
type place struct {
	*testing.T
	client.Client
	ctx       context.Context
	namespace string
	// config is the config of a case that is given the namespace.
	config *ExpectConfig
	// eventually is set if controllers of a cluster act asynchronously.
	eventually bool
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: name}
}

// create creates an object.
func (p *place) create(obj client.Object) {
	p.Helper()
	p.must(p.Create(p.ctx, obj))
}

// yes formats a cell of the table.
func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func fails(err error, is func(error) bool) string { return yes(err != nil && is(err)) }

func newResource(p *place) *fixture.Resource {
	return &fixture.Resource{ObjectMeta: p.meta("one"), Spec: fixture.ResourceSpec{Fields: map[string]string{"a": "1"}}}
}

func newConfigMap(p *place, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: p.meta(name), Data: map[string]string{"a": "1"}}
}

func applied(p *place, kind string, fields map[string]any) runtime.ApplyConfiguration {
	content := map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": p.namespace, "name": "one"},
	}
	if kind == "Resource" {
		content["apiVersion"] = fixture.GroupVersion.String()
	}
	for name, field := range fields {
		content[name] = field
	}
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
}

// Each row of the table in the guide is observed.
func TestFidelity(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // watches log errors when the control plane stops
	traits := append(append(writeTraits(), applyTraits()...), serverTraits()...)
	server, err := sandbox.Start(t.Context(), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := server.InstallCRDs(
		t.Context(), definition(fixture.GroupVersion.WithKind("Resource")), definition(untypedKind),
	); err != nil {
		t.Fatal(err)
	}
	direct, err := client.New(server.RESTConfig(), client.Options{Scheme: fixture.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("generations", func(t *testing.T) { testGenerations(t, direct) })

	onCluster := OnCluster(server.RESTConfig())
	var options runOptions
	onCluster.applyTo(&options)

	for i, trait := range traits {
		observe := func(name string, realistic bool, clusters map[string]*cluster.Cluster) (seen string) {
			t.Run(trait.feature+"/"+name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				p := &place{T: t, ctx: ctx, namespace: fmt.Sprintf("trait-%d", i), eventually: realistic && clusters != nil}
				p.config = &ExpectConfig{
					Name:                   cluster.DefaultName,
					Scheme:                 fixture.NewScheme(),
					StatusSubResourceTypes: []client.Object{&fixture.Resource{}},
					Realistic:              realistic,
					GivenObjects:           []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}},
				}
				if clusters != nil {
					turn, err := cluster.TakeTurn(t.Context(), clusters)
					p.must(err)
					defer turn.End()
					p.config.newAPI = func(c *ExpectConfig) (*api, error) { return newClusterAPI(turn, c) }
					defer func() { p.must(p.config.opened.api.close()) }()
				}
				p.Client = p.config.Config().Client
				seen = trait.observe(p)
			})
			return seen
		}
		onCluster := observe("OnCluster", false, options.clusters)
		if realistic := observe("OnCluster and Realistic", true, options.clusters); realistic != onCluster {
			onCluster = realistic + ", if Realistic"
		}
		for _, cell := range []struct{ column, got, want string }{
			{"fake", observe("fake", false, nil), trait.fake},
			{"Realistic", observe("Realistic", true, nil), trait.realistic},
			{"OnCluster", onCluster, trait.onCluster},
		} {
			if cell.got != cell.want {
				t.Errorf("%s: %s: got %q, the table says %q", trait.feature, cell.column, cell.got, cell.want)
			}
		}
	}

	rows := make([]string, 0, len(traits))
	for _, trait := range traits {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", trait.feature, trait.fake, trait.realistic, trait.onCluster))
	}
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	var inGuide []string
	for line := range strings.Lines(string(text)) {
		if row := strings.TrimSpace(line); strings.HasPrefix(row, "|") {
			inGuide = append(inGuide, row)
		}
	}
	// skips the heading and the line below it
	if diff := cmp.Diff(inGuide[min(2, len(inGuide)):], rows); diff != "" {
		t.Errorf(
			"%s differs from what is observed (-guide +observed):\n%s\nIts rows must be:\n%s", guide, diff,
			strings.Join(rows, "\n"),
		)
	}
}

// testGenerations compares which kinds have a generation in memory and on a server.
func testGenerations(t *testing.T, server client.Client) {
	data, err := os.ReadFile("testdata/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	memory := (&ExpectConfig{Scheme: server.Scheme(), Realistic: true}).Config()
	compared := 0
	for manifest := range bytes.SplitSeq(data, []byte("---\n")) {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(manifest, &obj.Object); err != nil {
			t.Fatal(err)
		}
		inMemory := obj.DeepCopy()
		if err := memory.Create(t.Context(), inMemory); err != nil {
			t.Errorf("%s: %v", obj.GroupVersionKind(), err)
			continue
		}
		if err := server.Create(t.Context(), obj); err != nil {
			t.Errorf("%s: %v", obj.GroupVersionKind(), err)
			continue
		}
		compared++
		if got, want := inMemory.GetGeneration() != 0, obj.GetGeneration() != 0; got != want {
			t.Errorf("%s: has a generation in memory: %t, on a server: %t", obj.GroupVersionKind(), got, want)
		}
	}
	if compared < 20 {
		t.Errorf("compared only %d kinds", compared)
	}
}

// untypedKind is a kind that the server serves and the scheme does not have.
var untypedKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Untyped"}

// definition returns a CustomResourceDefinition with a schema.
func definition(kind schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	fields := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"fields": {
			Type: "object",
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
				Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"},
			},
		},
	}}
	singular := strings.ToLower(kind.Kind)
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: singular + "s", Singular: singular,
			},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": fields, "status": fields},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
			}},
		},
	}
}

// applyTraits test server-side apply.
func applyTraits() []trait {
	get := func(p *place) *corev1.ConfigMap {
		p.Helper()
		configMap := &corev1.ConfigMap{}
		p.must(p.Get(p.ctx, client.ObjectKey{Namespace: p.namespace, Name: "one"}, configMap))
		return configMap
	}
	return []trait{
		{
			feature: "Applying an object that does not exist creates it",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				p.must(
					p.Apply(p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"a": "1"}}), client.FieldOwner("me")),
				)
				return yes(get(p).Data["a"] == "1")
			},
		},
		{
			feature: "Fields that are not applied are kept",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				p.create(newConfigMap(p, "one"))
				p.must(
					p.Apply(p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"b": "1"}}), client.FieldOwner("me")),
				)
				return yes(get(p).Data["a"] == "1" && get(p).Data["b"] == "1")
			},
		},
		{
			feature: "Fields are removed when their owner no longer applies them",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				p.must(
					p.Apply(
						p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"a": "1", "b": "1"}}),
						client.FieldOwner("me"),
					),
				)
				p.must(
					p.Apply(p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"a": "1"}}), client.FieldOwner("me")),
				)
				_, ok := get(p).Data["b"]
				return yes(!ok)
			},
		},
		{
			feature: "Applying a field that another manager owns is a conflict",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				p.create(newConfigMap(p, "one"))
				mine := applied(p, "ConfigMap", map[string]any{"data": map[string]any{"a": "2"}})
				err := p.Apply(p.ctx, mine, client.FieldOwner("me"))
				if apierrs.IsConflict(err) {
					p.must(p.Apply(p.ctx, mine, client.FieldOwner("me"), client.ForceOwnership))
				}
				if got := get(p).Data["a"]; got != "2" {
					p.Errorf("applied 2, got %s", got)
				}
				return yes(apierrs.IsConflict(err))
			},
		},
		{
			feature: "Applying a status changes nothing else",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				p.must(p.Status().Apply(p.ctx, applied(p, "Resource", map[string]any{
					"spec": map[string]any{
						"fields": map[string]any{"a": "2"},
					}, "status": map[string]any{"fields": map[string]any{"a": "3"}},
				}), client.FieldOwner("me")))
				p.must(p.Get(p.ctx, client.ObjectKeyFromObject(resource), resource))
				return yes(resource.Spec.Fields["a"] == "1" && resource.Status.Fields["a"] == "3")
			},
		},
		{
			feature: "Applying without finalizers keeps them, on an object that is being deleted",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				configMap.Finalizers = []string{"example.com/wait"}
				p.create(configMap)
				p.must(p.Delete(p.ctx, configMap))
				p.must(
					p.Apply(p.ctx, applied(p, "ConfigMap", map[string]any{"data": map[string]any{"b": "1"}}), client.FieldOwner("me")),
				)
				return yes(p.Get(p.ctx, client.ObjectKeyFromObject(configMap), configMap) == nil)
			},
		},
		{
			feature: "A field manager is required",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				return yes(p.Apply(p.ctx, applied(p, "ConfigMap", nil)) != nil)
			},
		},
	}
}

// writeTraits test how writes change an object.
func writeTraits() []trait {
	return []trait{
		{
			feature: "An update with a stale `resourceVersion` is a conflict",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				stale := resource.DeepCopy()
				resource.Spec.Fields["a"] = "2"
				p.must(p.Update(p.ctx, resource))
				stale.Spec.Fields["a"] = "3"
				return fails(p.Update(p.ctx, stale), apierrs.IsConflict)
			},
		},
		{
			feature: "A write that changes nothing keeps the `resourceVersion`",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				before := resource.ResourceVersion
				p.must(p.Update(p.ctx, resource))
				return yes(resource.ResourceVersion == before)
			},
		},
		{
			feature: "`generation` starts at 1, and changes with the desired state",
			fake:    "no", realistic: "yes", onCluster: "yes, if Realistic",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				generations := []int64{resource.Generation}
				resource.Labels = map[string]string{"desired": "no"}
				p.must(p.Update(p.ctx, resource))
				generations = append(generations, resource.Generation)
				resource.Spec.Fields["a"] = "2"
				p.must(p.Update(p.ctx, resource))
				generations = append(generations, resource.Generation)
				return yes(generations[0] == 1 && generations[1] == 1 && generations[2] == 2)
			},
		},
		{
			feature: "Created objects get a `uid` and a `creationTimestamp`",
			fake:    "no", realistic: "yes", onCluster: "yes, if Realistic",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return yes(configMap.UID != "" && !configMap.CreationTimestamp.IsZero())
			},
		},
		{
			feature: "The `uid` and the `creationTimestamp` are immutable",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				changed := configMap.DeepCopy()
				changed.CreationTimestamp = metav1.NewTime(time.UnixMilli(0))
				p.must(p.Update(p.ctx, changed))
				kept := changed.CreationTimestamp.Equal(&configMap.CreationTimestamp)
				changed.UID = "another"
				return yes(kept && apierrs.IsConflict(p.Update(p.ctx, changed)))
			},
		},
		{
			feature: "The status of a created object is dropped if it is a subresource",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				resource.Status.Fields = map[string]string{"a": "1"}
				p.create(resource)
				stored := &fixture.Resource{}
				p.must(p.Get(p.ctx, client.ObjectKeyFromObject(resource), stored))
				return yes(resource.Status.Fields == nil && stored.Status.Fields == nil)
			},
		},
		{
			feature: "An update does not change a status that is a subresource",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				resource.Status.Fields = map[string]string{"a": "1"}
				p.must(p.Update(p.ctx, resource))
				return yes(resource.Status.Fields == nil)
			},
		},
		{
			feature: "A status update changes nothing else",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				p.create(resource)
				resource.Spec.Fields["a"] = "2"
				resource.Status.Fields = map[string]string{"a": "1"}
				p.must(p.Status().Update(p.ctx, resource))
				return yes(resource.Spec.Fields["a"] == "1" && resource.Status.Fields["a"] == "1")
			},
		},
		{
			feature: "A status write fails if the status is not a subresource",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return fails(p.Status().Update(p.ctx, configMap), apierrs.IsNotFound)
			},
		},
		{
			feature: "A deleted object is kept until it has no finalizers",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				resource := newResource(p)
				resource.Finalizers = []string{"example.com/wait"}
				p.create(resource)
				p.must(p.Delete(p.ctx, resource))
				p.must(p.Get(p.ctx, client.ObjectKeyFromObject(resource), resource))
				terminating := !resource.DeletionTimestamp.IsZero()
				resource.Finalizers = nil
				p.must(p.Update(p.ctx, resource))
				return yes(terminating && apierrs.IsNotFound(p.Get(p.ctx, client.ObjectKeyFromObject(resource), resource)))
			},
		},
		{
			feature: "The first deletion changes `generation`, a second one changes nothing",
			fake:    "no", realistic: "yes", onCluster: "yes, if Realistic",
			observe: func(p *place) string {
				resource := newResource(p)
				resource.Finalizers = []string{"example.com/wait"}
				p.create(resource)
				var versions []string
				for range 2 {
					p.must(p.Delete(p.ctx, resource))
					p.must(p.Get(p.ctx, client.ObjectKeyFromObject(resource), resource))
					versions = append(versions, resource.ResourceVersion)
				}
				return yes(resource.Generation == 2 && versions[0] == versions[1])
			},
		},
		{
			feature: "The `resourceVersion` in the preconditions of a deletion is checked",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return fails(p.Delete(p.ctx, configMap, client.Preconditions{ResourceVersion: new("7")}), apierrs.IsConflict)
			},
		},
		{
			feature: "The `uid` in the preconditions of a deletion is checked",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return fails(p.Delete(p.ctx, configMap, client.Preconditions{UID: new(types.UID("another"))}), apierrs.IsConflict)
			},
		},
		{
			feature: "Client and APIReader see the same objects",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return yes(
					p.config.Config().APIReader.Get(p.ctx, client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{}) == nil,
				)
			},
		},
		{
			feature: "A read sees all earlier writes: there is no cache",
			fake:    "yes", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				p.create(configMap)
				return yes(p.Get(p.ctx, client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{}) == nil)
			},
		},
	}
}
