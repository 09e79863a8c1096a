// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/sandbox"
)

const gizmos = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.apply.example.com}
spec:
  group: apply.example.com
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo, listKind: GizmoList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 1}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer, default: 1}}}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              order: {type: array, items: {type: string}}
              nested: {type: object, default: {level: high}, properties: {level: {type: string}}}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, properties: {phase: {type: string}, size: {type: integer}}}
`

// scripts are requests for one object. Each line has a verb, a manager and content.
var scripts = []string{
	`apply a {apiVersion: v1, kind: ConfigMap, data: {k: v}}
apply a {apiVersion: v1, kind: ConfigMap, data: {k: v}}
apply b {apiVersion: v1, kind: ConfigMap}
apply b {apiVersion: v1, kind: ConfigMap, data: {k: v}}
apply b {apiVersion: v1, kind: ConfigMap, data: {k: w}}
force b {apiVersion: v1, kind: ConfigMap, data: {k: w, l: x}}
apply b {apiVersion: v1, kind: ConfigMap}
patch c {data: {m: x}, metadata: {labels: {a: b}, annotations: {c: d}}}
patch c {data: {m: x}}
apply a {apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: c}}}
apply a {apiVersion: v1, kind: ConfigMap, metadata: {managedFields: []}}
apply a {apiVersion: v1, kind: ConfigMap, unknown: x}`,
	`create a {apiVersion: v1, kind: ServiceAccount}
apply b {apiVersion: v1, kind: ServiceAccount}
apply b {apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: x}]}
patch a {imagePullSecrets: [{name: x}, {name: "w"}]}
apply b {apiVersion: v1, kind: ServiceAccount}`,
	`create a {apiVersion: v1, kind: ConfigMap, data: {k: v}}
patch b {data: {l: w}}
apply c {apiVersion: v1, kind: ConfigMap, data: {k: x}}
force c {apiVersion: v1, kind: ConfigMap, data: {k: x}}`,
	`create a {apiVersion: apply.example.com/v1, kind: Gizmo, spec: {parts: [{name: a}]}}
status b {apiVersion: apply.example.com/v1, kind: Gizmo}
status b {apiVersion: apply.example.com/v1, kind: Gizmo, status: {phase: Ready}}
status c {apiVersion: apply.example.com/v1, kind: Gizmo, status: {phase: Failed}}
status c {apiVersion: apply.example.com/v1, kind: Gizmo, status: {size: 1}, spec: {size: 5}}
apply b {apiVersion: apply.example.com/v1, kind: Gizmo, spec: {parts: [{name: b, count: 3}], tags: [x]}, status: {phase: Other}}
apply c {apiVersion: apply.example.com/v1, kind: Gizmo, spec: {parts: [{name: b}], tags: ["w"], extra: {a: {b: c}}, order: [a, b]}}
apply b {apiVersion: apply.example.com/v1, kind: Gizmo, spec: {order: [b]}}
apply c {apiVersion: apply.example.com/v1, kind: Gizmo}
apply b {apiVersion: apply.example.com/v1, kind: Gizmo, spec: {size: x}}
apply b {apiVersion: apply.example.com/v1, kind: Gizmo, spec: {unknown: x}}
apply b {apiVersion: apply.example.com/v1, kind: Gizmo, spec: {nested: {level: low}}}
patchstatus d {status: {phase: Failed}}`,
	`apply a {apiVersion: apply.example.com/v1, kind: Gizmo, metadata: {finalizers: [a.b/c], ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: "1"}]}}
apply b {apiVersion: apply.example.com/v1, kind: Gizmo, metadata: {finalizers: [a.b/d]}}
status b {apiVersion: apply.example.com/v1, kind: Gizmo}
apply a {apiVersion: apply.example.com/v1, kind: Gizmo, metadata: {ownerReferences: []}}
apply b {apiVersion: apply.example.com/v1, kind: Gizmo}`,
	`apply a {apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b, ports: [{containerPort: 80}]}]}}}}
apply a {apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}
apply b {apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3}}
apply a {apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}
status c {apiVersion: apps/v1, kind: Deployment, status: {replicas: 3}}
patchstatus d {status: {readyReplicas: 1}}
patch d {spec: {replicas: 4}}
apply b {apiVersion: apps/v1, kind: Deployment}
scale e {spec: {replicas: 7}}
scale e {spec: {replicas: 8}}
scale d {spec: {replicas: 0}}
scale e {spec: {replicas: 1}}
apply b {apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: b}]}}}}`,
	`apply a {apiVersion: v1, kind: Service, spec: {selector: {a: b}, ports: [{port: 80}]}}
apply a {apiVersion: v1, kind: Service, spec: {selector: {a: b}, ports: [{port: 81}]}}
apply b {apiVersion: v1, kind: Service, spec: {ports: [{port: 81, protocol: TCP, name: x}]}}`,
	`create a {apiVersion: v1, kind: Service, spec: {selector: {a: b}, ports: [{port: 80}]}}
patch a {spec: {type: NodePort}}
apply b {apiVersion: v1, kind: Service}`,
	`apply a {apiVersion: v1, kind: Service, spec: {type: LoadBalancer, ports: [{name: http, port: 80}, {name: dns, port: 53}]}}
apply a {apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`,
	`apply a {apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}
apply a {apiVersion: batch/v1, kind: Job, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}`,
}

func TestApplyIsTheServers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	scheme := fixture.NewScheme()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(gizmos), definition); err != nil {
		t.Fatal(err)
	}
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true}, CRDs: []any{definition},
	})
	real, err := client.New(env.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := kinds.NewRegistry(scheme, definition)
	if err != nil {
		t.Fatal(err)
	}
	for i, script := range scripts {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			memory := memapi.New(memapi.Options{Registry: registry, Applier: apply.New(registry)}).Client("test")
			if err := memory.Create(t.Context(), &corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: env.Namespace},
			}); err != nil {
				t.Fatal(err)
			}
			var want, got []any
			for attempt := range 5 {
				name := fmt.Sprintf("script-%d-%d", i, attempt)
				second := time.Now().Unix()
				want = play(t, real, env.Namespace, name, script)
				crossed := time.Now().Unix() != second
				// Entries of managed fields have times in seconds and are sorted by them, so the clock alone can create a
				// version.
				if got = play(t, memory, env.Namespace, name, script); !crossed || cmp.Equal(want, got) {
					break
				}
			}
			for i, line := range strings.Split(script, "\n") {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Errorf("%s (-real +memory):\n%s", line, diff)
				}
			}
		})
	}
}

// play executes a script and returns the object after each line.
func play(t *testing.T, c client.Client, namespace, name, script string) []any {
	t.Helper()
	var results []any
	applied := false
	version, kind := "", schema.GroupVersionKind{}
	for line := range strings.Lines(script) {
		fields := strings.SplitN(line, " ", 3)
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(fields[2]), &obj.Object); err != nil {
			t.Fatal(err)
		}
		owner := client.FieldOwner(fields[1])
		patch, err := json.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		if kind.Empty() {
			kind = obj.GroupVersionKind()
		}
		obj.SetGroupVersionKind(kind)
		obj.SetName(name)
		obj.SetNamespace(namespace)
		switch fields[0] {
		case "create":
			err = c.Create(t.Context(), obj, owner)
			t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), obj) })
		case "patch":
			err = c.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, patch), owner)
		case "scale":
			obj.SetGroupVersionKind(kind)
			scale := &unstructured.Unstructured{}
			scale.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
			if err = c.SubResource("scale").Patch(
				t.Context(), obj, client.RawPatch(types.MergePatchType, patch), owner, client.WithSubResourceBody(scale),
			); err == nil {
				err = c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
			}
		case "patchstatus":
			err = c.Status().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, patch), owner)
		case "apply":
			err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), owner)
		case "force":
			err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), owner, client.ForceOwnership)
		case "status":
			err = c.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), owner)
		}
		if err != nil {
			results = append(results, "error: "+strings.ReplaceAll(err.Error(), namespace, "NAMESPACE"))
			continue
		}
		applied = applied || fields[0] == "apply" || fields[0] == "force" || fields[0] == "status"
		if !applied {
			obj.SetManagedFields(nil) // in memory they are kept only when they are needed
		}
		changed := obj.GetResourceVersion() != version
		version = obj.GetResourceVersion()
		results = append(results, map[string]any{"changed": changed, "object": shown(t, obj)})
	}
	return results
}

// shown returns an object without the fields that differ between servers.
func shown(t *testing.T, obj *unstructured.Unstructured) any {
	t.Helper()
	obj = obj.DeepCopy()
	uid := string(obj.GetUID())
	unstructured.RemoveNestedField(obj.Object, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(obj.Object, "spec", "clusterIP")
	unstructured.RemoveNestedField(obj.Object, "spec", "clusterIPs")
	ports, _, _ := unstructured.NestedSlice(obj.Object, "spec", "ports")
	for _, port := range ports {
		delete(port.(map[string]any), "nodePort")
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(obj.Object, ports, "spec", "ports")
	}
	fields := obj.GetManagedFields()
	for i := range fields {
		fields[i].Time = nil
	}
	// Entries are sorted by their times, which depend on the second of each write.
	slices.SortStableFunc(fields, func(a, b metav1.ManagedFieldsEntry) int {
		return strings.Compare(
			a.Manager+" "+string(a.Operation)+" "+a.Subresource, b.Manager+" "+string(b.Operation)+" "+b.Subresource,
		)
	})
	obj.SetManagedFields(fields)
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	var content any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), uid, "UID")), &content); err != nil {
		t.Fatal(err)
	}
	return content
}
