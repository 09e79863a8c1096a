// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// namespacedKinds has what an object of each kind in a namespace needs beside a name. The keys are group, version, kind
// and plural name.
var namespacedKinds = map[string]string{
	"v1 ConfigMap configmaps":                         "",
	"v1 Endpoints endpoints":                          "",
	"v1 Event events":                                 "{involvedObject: {kind: Pod, name: a, namespace: NAMESPACE}}",
	"v1 LimitRange limitranges":                       "",
	"v1 PersistentVolumeClaim persistentvolumeclaims": "{spec: {accessModes: [ReadWriteOnce], resources: STORAGE}}",
	"v1 Pod pods":                                     "{spec: {containers: [{name: a, image: a}]}}",
	"v1 PodTemplate podtemplates":                     "{template: TEMPLATE}",
	"v1 ReplicationController replicationcontrollers": "{spec: {replicas: 0, selector: {a: b}, template: TEMPLATE}}",
	"v1 ResourceQuota resourcequotas":                 "",
	"v1 Secret secrets":                               "",
	"v1 Service services":                             "{spec: {ports: [{port: 80}]}}",
	"v1 ServiceAccount serviceaccounts":               "",

	"apps/v1 ControllerRevision controllerrevisions": "{revision: 1, data: {a: b}}",
	"apps/v1 DaemonSet daemonsets":                   "{spec: {selector: {matchLabels: {a: b}}, template: TEMPLATE}}",
	"apps/v1 Deployment deployments":                 "{spec: {selector: {matchLabels: {a: b}}, template: TEMPLATE}}",
	"apps/v1 ReplicaSet replicasets":                 "{spec: {selector: {matchLabels: {a: b}}, template: TEMPLATE}}",
	"apps/v1 StatefulSet statefulsets":               "{spec: {selector: {matchLabels: {a: b}}, template: TEMPLATE}}",

	"autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers": "{spec: {maxReplicas: 1, scaleTargetRef: SCALED}}",

	"batch/v1 CronJob cronjobs": "{spec: {schedule: 0 0 1 1 *, jobTemplate: {spec: {template: ONCE}}}}",
	"batch/v1 Job jobs":         "{spec: {template: ONCE}}",

	"coordination.k8s.io/v1 Lease leases":                   "",
	"discovery.k8s.io/v1 EndpointSlice endpointslices":      "{addressType: IPv4, endpoints: []}",
	"networking.k8s.io/v1 Ingress ingresses":                "{spec: {defaultBackend: {resource: {kind: A, name: a}}}}",
	"networking.k8s.io/v1 NetworkPolicy networkpolicies":    "{spec: {podSelector: {}}}",
	"policy/v1 PodDisruptionBudget poddisruptionbudgets":    "{spec: {selector: {matchLabels: {a: b}}}}",
	"rbac.authorization.k8s.io/v1 Role roles":               "",
	"rbac.authorization.k8s.io/v1 RoleBinding rolebindings": "{roleRef: ROLE}",

	"resource.k8s.io/v1 ResourceClaim resourceclaims":                 "{spec: {}}",
	"resource.k8s.io/v1 ResourceClaimTemplate resourceclaimtemplates": "{spec: {spec: {}}}",
	"storage.k8s.io/v1 CSIStorageCapacity csistoragecapacities":       "{storageClassName: a}",
}

// objectOf returns the manifest of an element of namespacedKinds, and its kind.
func objectOf(namespace, kind, content string) (manifest string, of schema.GroupVersionResource) {
	words := strings.Fields(kind)
	version, err := schema.ParseGroupVersion(words[0])
	if err != nil {
		panic(err)
	}
	content = strings.NewReplacer(
		"NAMESPACE", namespace, "STORAGE", "{requests: {storage: 1}}",
		"SCALED", "{apiVersion: apps/v1, kind: Deployment, name: a}",
		"ROLE", "{apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}",
		"TEMPLATE", "{metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}",
		"ONCE", "{spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}",
	).Replace(content)
	manifest = "{apiVersion: " + words[0] + ", kind: " + words[1] + ", metadata: {name: a, namespace: " + namespace + "}"
	if content != "" {
		manifest += ", " + strings.TrimSuffix(strings.TrimPrefix(content, "{"), "}")
	}
	return manifest + "}", version.WithResource(words[2])
}

// TestNamespaceIsEmptiedOfEachKind deletes a namespace with an object of each kind, and creates one with the same name,
// in which nothing of the former one may be.
func TestNamespaceIsEmptiedOfEachKind(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	const group = "all.namespaces.example.com"
	widgets := p.installCRD(t, group, "widget", "Widget")
	var inTest []string
	resources := []schema.GroupVersionResource{widgets}
	p.apply(t, namespace, "{apiVersion: "+group+"/v1, kind: Widget, metadata: {name: a, namespace: "+namespace+"}}")
	for kind, content := range namespacedKinds {
		manifest, resource := objectOf(namespace, kind, content)
		p.apply(t, namespace, manifest)
		resources = append(resources, resource)
		inTest = append(inTest, resource.GroupResource().String())
	}
	slices.Sort(inTest)
	if diff := cmp.Diff(inTest, p.builtInKinds(t)); diff != "" {
		t.Errorf("kinds of this test and of the server (-test +server):\n%s", diff)
	}
	if err := p.client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, collectLimit, "namespace removed", func(ctx context.Context) error {
		found, err := p.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("status %+v", found.Status))
	})
	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := p.client.CoreV1().Namespaces().Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, resource := range resources {
		_, err := p.dynamic.Resource(resource).Namespace(namespace).Get(t.Context(), "a", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s of the former namespace: %v, want not found", resource, err)
		}
	}
}

// builtInKinds returns Kubernetes' kinds in namespaces that can be created and deleted.
func (p *process) builtInKinds(t *testing.T) []string {
	t.Helper()
	lists, err := p.client.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		t.Fatal(err)
	}
	resources, err := discovery.GroupVersionResources(
		discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"create", "delete"}}, lists))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for resource := range resources {
		// Both groups show the same events, only a kubelet can sign requests of pods, and kinds of tests are below
		// example.com.
		if resource.Group == "events.k8s.io" || resource.Resource == "podcertificaterequests" ||
			strings.HasSuffix(resource.Group, "example.com") {
			continue
		}
		kinds = append(kinds, resource.GroupResource().String())
	}
	slices.Sort(kinds)
	return kinds
}
