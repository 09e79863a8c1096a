// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph/rbac"
)

// RecordPermissions records the permissions that the calls of cases need in a cluster, including calls that reactors
// answer or fail. A read by Client needs list and watch, as the cache of a manager does. Calls of AdditionalConfigs are
// not recorded, as they use other credentials, and neither are events. [AssertPermissions] compares them with a role.
func RecordPermissions(recorder *rbac.Recorder) RunOption {
	return runOption(func(options *runOptions) { options.permissions = recorder })
}

// AssertPermissions fails the test if the rules of a role do not grant what reconcilers declare, or what recorders have
// recorded. It logs what is granted and was not used, and what was used and is not declared. Declared may be nil.
func AssertPermissions(
	t testing.TB, role []rbacv1.PolicyRule, declared rbac.Permissions, recorders ...*rbac.Recorder,
) {
	t.Helper()
	used := rbac.Permissions{}
	for _, recorder := range recorders {
		maps.Copy(used, recorder.Used())
	}
	report := rbac.Check(role, declared, used)
	if err := report.Err(); err != nil {
		t.Errorf("%v\nthe rules must also contain:\n%s", err, rbac.Of(report.NotGranted...).Markers())
	}
	if report.NotGranted = nil; report.String() != "" {
		t.Logf("permissions:\n%s", report)
	}
}

// recordCall records what a call of a client needs.
func (w *clientWrapper) recordCall(action Action) {
	if w.permissions == nil {
		return
	}
	verbs := []string{strings.ReplaceAll(action.GetVerb(), "-", "")} // delete-collection
	if verbs[0] == "apply" {
		verbs[0] = "patch" // the verb of the request
	}
	isRead := verbs[0] == "get" || verbs[0] == "list" || verbs[0] == "watch"
	if isRead && action.GetSubresource() == "" {
		verbs = rbac.CacheVerbs()
	}
	resource := action.GetResource()
	kind := schema.GroupVersionKind{
		Group: resource.Group, Version: resource.Version, Kind: strings.TrimSuffix(resource.Resource, "List"),
	}
	w.permissions.AddKind(w.RESTMapper(), kind, action.GetSubresource(), verbs...)
}

// recordingReader is an APIReader whose calls are recorded.
type recordingReader struct {
	client.Reader
	client   client.Client
	recorder *rbac.Recorder
}

func (r recordingReader) record(verb string, obj runtime.Object) {
	if kind, err := r.client.GroupVersionKindFor(obj); err == nil {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		r.recorder.AddKind(r.client.RESTMapper(), kind, "", verb)
	}
}

// Get implements [client.Reader].
func (r recordingReader) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	r.record("get", obj)
	return r.Reader.Get(ctx, key, obj, opts...)
}

// List implements [client.Reader].
func (r recordingReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r.record("list", list)
	return r.Reader.List(ctx, list, opts...)
}
