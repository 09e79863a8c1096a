// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/graph"
	"trueup.dev/internal/difference/operations"
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/stash"
	rtime "trueup.dev/time"
	"trueup.dev/validation"
)

var (
	_ admission.Handler    = (*AdmissionWebhookAdapter[client.Object])(nil)
	_ validation.Validator = (*AdmissionWebhookAdapter[client.Object])(nil)
)

// AdmissionWebhookAdapter answers admission requests with subreconcilers. It is the root of a tree of reconcilers,
// like [ResourceReconciler], for resources that are about to be written.
//
// The resource is the object of the request. For a DELETE it is the old object. The response contains all changes of
// the resource by reconcilers as a patch, except for a DELETE, which cannot change the object. Fields that the Go type
// does not have are kept. The operations of the patch are sorted by path unless their order matters. Values have the Go
// types that encoding/json decodes to. A number is a float64, or a json.Number if a float64 cannot represent it. An
// error denies the request with the text of the error and code 500, unless the response on the context already has a
// result. [ErrHaltSubReconcilers] is not an error: it stops the reconcilers that follow and allows the request.
//
// Reconcilers see the defaults that the resource sets itself. The patch contains these defaults only if reconcilers
// made other changes.
//
// To validate a resource, set Allowed and Result of the response, see [RetrieveAdmissionResponse].
//
// RBAC: the permissions that the reconcilers need.
type AdmissionWebhookAdapter[Type client.Object] struct {
	// Name identifies this webhook in logs. Defaults to `<Type>AdmissionWebhookAdapter`.
	Name string

	// Type is the kind of the resource. Defaults to the type parameter; required for unstructured objects and duck types.
	Type Type

	// Reconciler is called with the resource. Its result is not used. Required.
	Reconciler SubReconciler[Type]

	// BeforeHandle is called first for each request. If it returns a context, the request uses that context. Optional.
	BeforeHandle func(ctx context.Context, req admission.Request, resp *admission.Response) context.Context

	// AfterHandle is called last for each request and may change the response. Optional.
	AfterHandle func(ctx context.Context, req admission.Request, resp *admission.Response)

	// Config is the config for the cluster. Required if reconcilers make requests, as reconcilers of children and
	// finalizers do.
	Config Config

	lazyInit sync.Once
}

func (r *AdmissionWebhookAdapter[T]) init() {
	r.lazyInit.Do(func() {
		if nilcheck.IsNilPointer(r.Type) {
			r.Type = newEmpty[T]()
		}
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sAdmissionWebhookAdapter", typeName(r.Type))
		}
		if r.BeforeHandle == nil {
			r.BeforeHandle = func(ctx context.Context, _ admission.Request, _ *admission.Response) context.Context { return ctx }
		}
		if r.AfterHandle == nil {
			r.AfterHandle = func(context.Context, admission.Request, *admission.Response) {}
		}
	})
}

// Validate checks the required field. If ctx requests recursion, it also validates Reconciler.
func (r *AdmissionWebhookAdapter[T]) Validate(ctx context.Context) error {
	r.init()
	problems := problems{}
	if nilcheck.IsNilPointer(r.Type) {
		problems.add("AdmissionWebhookAdapter %q must define Type", r.Name)
	}
	if nilcheck.IsNilPointer(r.Reconciler) {
		problems.add("AdmissionWebhookAdapter %q must define Reconciler", r.Name)
	}
	problems.nested(
		r.scope(Request{}).onto(ctx), r.Reconciler, "AdmissionWebhookAdapter %q must have a valid Reconciler", r.Name,
	)
	return problems.err()
}

// DescribeTo implements [graph.Describer].
func (r *AdmissionWebhookAdapter[T]) DescribeTo(n *graph.Node) {
	r.init()
	n.Root(schemeOf(r.Config), r.Type, nil)
	n.SetUp = true // reconcilers below a webhook are not set up
	n.Step(r.Name)
	n.Nest("Reconciler", r.Reconciler)
}

// Build is like BuildWithContext but panics on an error.
//
// Deprecated: use [AdmissionWebhookAdapter.BuildWithContext].
func (r *AdmissionWebhookAdapter[T]) Build() *admission.Webhook {
	webhook, err := r.BuildWithContext(context.Background())
	if err != nil {
		panic(err)
	}
	return webhook
}

// BuildWithContext validates the adapter and returns the webhook to register with a server of controller-runtime.
func (r *AdmissionWebhookAdapter[T]) BuildWithContext(ctx context.Context) (*admission.Webhook, error) {
	r.init()
	// Nested reconcilers are not set up.
	validating, _ := setupcheck.Begin(ctx)
	if r.Config.Client == nil {
		label := fmt.Sprintf("AdmissionWebhookAdapter %q", r.Name)
		validating = context.WithValue(validating, withoutConfigKey{}, label)
	}
	if err := r.Validate(setupcheck.NeverSetUp(validating)); err != nil {
		return nil, everyProblem(err)
	}
	return &admission.Webhook{
		Handler: r,
		WithContextFunc: func(ctx context.Context, req *http.Request) context.Context {
			log := crlog.FromContext(ctx).WithName("controller-runtime.webhook.webhooks").WithName(r.Name).
				WithValues("webhook", req.URL.Path)
			ctx = logr.NewContext(ctx, log)
			ctx = stash.WithContext(ctx)
			ctx = r.scope(Request{}).onto(ctx)
			return StashHTTPRequest(ctx, req)
		},
	}, nil
}

func (r *AdmissionWebhookAdapter[T]) scope(req Request) scope {
	return scope{
		request: req, config: &r.Config, originalConfig: &r.Config, resourceType: r.Type, originalResourceType: r.Type,
	}
}

// Handle answers a request.
func (r *AdmissionWebhookAdapter[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	r.init()
	trace := &step.Trace{Ignore: isQuiet}
	ctx = step.Root(ctx, trace)
	defer trace.LogPanic(ctx)
	if !stash.Configured(ctx) {
		ctx = stash.WithContext(ctx)
	}
	scope := scopeFrom(ctx)
	if scope.config == nil {
		scope = r.scope(Request{})
	}
	caller := ctx
	scope.caller = &caller
	scope.request = Request{NamespacedName: types.NamespacedName{Namespace: req.Namespace, Name: req.Name}}
	ctx = scope.onto(ctx)

	resp := &admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: req.UID, Allowed: true}}
	ctx = rtime.StashNow(ctx, time.Now())
	ctx = StashAdmissionRequest(ctx, req)
	ctx = StashAdmissionResponse(ctx, resp)
	if replaced := r.BeforeHandle(ctx, req, resp); replaced != nil {
		ctx = replaced
	}

	_, err := step.Run(ctx, step.Node{Name: r.Name}, r.Type, func(ctx context.Context, _ T) (Result, error) {
		return Result{}, r.handle(ctx, req, resp)
	})
	if err != nil {
		logUnlessQuiet(ctx, err, "reconcile error", originOf(trace, err)...)
		resp.Allowed = false
		if resp.Result == nil {
			resp.Result = &metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
		}
	}
	r.AfterHandle(ctx, req, resp)
	return *resp
}

func (r *AdmissionWebhookAdapter[T]) handle(
	ctx context.Context, req admission.Request, resp *admission.Response,
) error {
	raw := req.Object.Raw
	if req.Operation == admissionv1.Delete {
		raw = req.OldObject.Raw
	}
	received := r.Type.DeepCopyObject().(T)
	if err := json.Unmarshal(raw, received); err != nil {
		return err
	}
	noteUID(ctx, received.GetUID())
	resource := received.DeepCopyObject().(T)
	if err := applyDefaults(ctx, resource); err != nil {
		return err
	}
	baseline := resource.DeepCopyObject().(T)

	// A durable error also halts, but it is an error: a request must not be allowed after an error.
	if _, err := r.Reconciler.Reconcile(ctx, resource); err != nil &&
		(!errors.Is(err, ErrHaltSubReconcilers) || errors.Is(err, ErrDurable)) {
		return err
	}
	if req.Operation == admissionv1.Delete {
		// The API server rejects a patch in the response to a DELETE.
		return nil
	}
	if resp.Patches != nil || resp.Patch != nil || resp.PatchType != nil ||
		equality.Semantic.DeepEqual(baseline, resource) {
		return nil
	}
	patches, err := admissionPatch(raw, received, resource)
	if err != nil {
		return err
	}
	if log := logr.FromContextOrDiscard(ctx); log.Enabled() {
		log.Info("mutating resource", "paths", patchedPaths(patches))
	}
	resp.Patches = patches
	return nil
}

type (
	admissionRequestKey  struct{}
	admissionResponseKey struct{}
	httpRequestKey       struct{}
)

// StashAdmissionRequest puts the admission request on the context.
func StashAdmissionRequest(ctx context.Context, req admission.Request) context.Context {
	return context.WithValue(ctx, admissionRequestKey{}, req)
}

// RetrieveAdmissionRequest returns the current admission request, or a zero request outside of an
// [AdmissionWebhookAdapter].
func RetrieveAdmissionRequest(ctx context.Context) admission.Request {
	req, _ := ctx.Value(admissionRequestKey{}).(admission.Request)
	return req
}

// StashAdmissionResponse puts the admission response on the context.
func StashAdmissionResponse(ctx context.Context, resp *admission.Response) context.Context {
	return context.WithValue(ctx, admissionResponseKey{}, resp)
}

// RetrieveAdmissionResponse returns the response to the current admission request, which reconcilers may change. It
// returns nil outside of an [AdmissionWebhookAdapter].
func RetrieveAdmissionResponse(ctx context.Context) *admission.Response {
	resp, _ := ctx.Value(admissionResponseKey{}).(*admission.Response)
	return resp
}

// StashHTTPRequest puts the HTTP request on the context.
func StashHTTPRequest(ctx context.Context, req *http.Request) context.Context {
	return context.WithValue(ctx, httpRequestKey{}, req)
}

// RetrieveHTTPRequest returns the HTTP request of the current admission request, or nil outside of an
// [AdmissionWebhookAdapter].
func RetrieveHTTPRequest(ctx context.Context) *http.Request {
	req, _ := ctx.Value(httpRequestKey{}).(*http.Request)
	return req
}

// admissionPatch returns a JSON patch to raw. The patch makes the change from received, which was decoded from raw, to
// changed. Operations are sorted by path unless their order matters. Values have the Go types that encoding/json
// decodes to, except for numbers that a float64 cannot represent.
func admissionPatch(raw []byte, received, changed client.Object) ([]jsonpatch.Operation, error) {
	original, err := decodeJSON(raw)
	if err != nil {
		return nil, err
	}
	before, err := jsonValue(received)
	if err != nil {
		return nil, err
	}
	after, err := jsonValue(changed)
	if err != nil {
		return nil, err
	}
	merged, err := json.Marshal(carryOver(original, before, after))
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.CreatePatch(raw, merged)
	if err != nil {
		return nil, err
	}
	return operations.WithPlainNumbers(operations.InOrder(patch, original)), nil
}

// patchedPaths returns the operations and paths of a patch for logs. Values may be secret.
func patchedPaths(patches []jsonpatch.Operation) []string {
	paths := make([]string, len(patches))
	for i := range patches {
		paths[i] = patches[i].Operation + " " + patches[i].Path
	}
	return paths
}

func jsonValue(obj any) (any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return decodeJSON(data)
}

// decodeJSON decodes numbers as json.Number. A float64 cannot represent every int64, and the patch would contain the
// rounded number.
func decodeJSON(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// carryOver applies the change from before to after to original. original also contains the fields that the Go type
// does not have. original and before are nil if the field does not exist.
func carryOver(original, before, after any) any {
	if equality.Semantic.DeepEqual(before, after) {
		return original
	}
	switch after := after.(type) {
	case map[string]any:
		originalMap, ok := original.(map[string]any)
		beforeMap, okBefore := before.(map[string]any)
		if !ok && original != nil || !okBefore && before != nil {
			return after
		}
		return carryOverMap(originalMap, beforeMap, after)
	case []any:
		originalList, ok := original.([]any)
		beforeList, okBefore := before.([]any)
		if !ok || !okBefore || len(originalList) != len(beforeList) {
			return after
		}
		return carryOverList(originalList, beforeList, after)
	default:
		return after
	}
}

func carryOverMap(original, before, after map[string]any) map[string]any {
	merged := make(map[string]any, len(original))
	for key, value := range original {
		_, known := before[key]
		if _, kept := after[key]; kept || !known {
			merged[key] = value
		}
	}
	for key, value := range after {
		was, known := before[key]
		if _, present := original[key]; known && !present && equality.Semantic.DeepEqual(was, value) {
			continue // a zero value that only the Go type writes out
		}
		merged[key] = carryOver(original[key], was, value)
	}
	return merged
}

// carryOverList matches each item with at most one previous item. It prefers an equal item in the same position, then
// an equal item, then an item of the same name. In a list of unchanged length it finally matches items by position.
func carryOverList(original, before, after []any) []any {
	matches := make([]int, len(after))
	for i := range matches {
		matches[i] = -1
	}
	taken := make([]bool, len(before))
	match := func(matching func(i, j int) bool) {
		for i := range after {
			for j := 0; j < len(before) && matches[i] < 0; j++ {
				if !taken[j] && matching(i, j) {
					matches[i], taken[j] = j, true
				}
			}
		}
	}
	same := func(i, j int) bool { return equality.Semantic.DeepEqual(before[j], after[i]) }
	match(func(i, j int) bool { return i == j && same(i, j) })
	match(same)
	// A name identifies an item only if it is unique.
	names := uniqueNames(before, after)
	match(func(i, j int) bool { return names.Has(itemName(after[i])) && itemName(before[j]) == itemName(after[i]) })
	if len(before) == len(after) {
		match(func(i, j int) bool { return i == j && itemName(before[j]) == itemName(after[i]) })
	}

	merged := make([]any, len(after))
	for i, item := range after {
		merged[i] = item
		if j := matches[i]; j >= 0 {
			merged[i] = carryOver(original[j], before[j], item)
		}
	}
	return merged
}

// uniqueNames returns the names that occur at most once in each list.
func uniqueNames(lists ...[]any) sets.Set[string] {
	names, twice := sets.New[string](), sets.New("")
	for _, list := range lists {
		seen := sets.New[string]()
		for _, item := range list {
			if name := itemName(item); seen.Has(name) {
				twice.Insert(name)
			} else {
				seen.Insert(name)
			}
		}
		names = names.Union(seen)
	}
	return names.Difference(twice)
}

// itemName returns the name of a list item, or "" if the item has no name.
func itemName(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}
