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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
					turn, err := cluster.TakeTurn(clusters)
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
