// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/hotloop"
	"trueup.dev/internal/engine/ownership"
	"trueup.dev/internal/objects/nilcheck"
)

// ConflictPolicy is what an [ApplyingObjectManager] does with a field that another client owns and has set to another
// value.
type ConflictPolicy string

const (
	// FailOnConflict returns a [FieldConflictError] and changes nothing.
	FailOnConflict ConflictPolicy = "Fail"
	// ForceOnConflict sets the field and takes it over: the other client no longer owns it.
	ForceOnConflict ConflictPolicy = "Force"
	// GiveWayOnConflict leaves the field to the other client, and applies the others. When the field has no other owner
	// any more, it is applied again. A client that is gone still owns its fields: use [AnnotationTakeBack].
	GiveWayOnConflict ConflictPolicy = "GiveWay"
)

func (p ConflictPolicy) valid() bool {
	return p == "" || p == FailOnConflict || p == ForceOnConflict || p == GiveWayOnConflict
}

// AnnotationTakeBack is an annotation of an object that an [ApplyingObjectManager] manages. Its value is a list of
// paths separated by commas, for example "spec.replicas", or "*" for all fields. The manager applies these fields, and
// everything below them, once as with [ForceOnConflict], and removes the annotation. If the desired object has the
// annotation, it stays. Use it to end a conflict, or when another client that owned a field is gone:
//
//	kubectl annotate deployment web trueup.dev/take-back=spec.replicas
const AnnotationTakeBack = "trueup.dev/take-back"

// FieldConflict is a field that two clients want to set to different values.
type FieldConflict struct {
	// Path is the path of the field, for example ".spec.replicas".
	Path string
	// Owner is the field manager that owns the field, with its operation, for example `"kubectl-edit" (Update)`.
	Owner string
}

// FieldConflictError is the error of an [ApplyingObjectManager] if other clients own fields that it is to set to other
// values.
type FieldConflictError struct {
	// Object is the kind, the namespace and the name of the object.
	Object string
	// FieldOwner is the field owner of the manager.
	FieldOwner string
	// Conflicts are sorted by path.
	Conflicts []FieldConflict
}

// Error names the fields and both owners of each.
func (e *FieldConflictError) Error() string {
	fields := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		fields[i] = fmt.Sprintf("%s is owned by %s", c.Path, c.Owner)
	}
	return fmt.Sprintf("%s has fields that %q wants to set to other values: %s",
		e.Object, e.FieldOwner, strings.Join(fields, "; "))
}

// Status returns the error with [ReasonFieldConflict], by which it is reflected on the parent of a child.
func (e *FieldConflictError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: ReasonFieldConflict, Message: e.Error()}
}

// policyAt returns the policy for a path with a leading dot.
func (r *ApplyingObjectManager[T]) policyAt(path string) ConflictPolicy {
	policy, longest := r.Conflicts, -1
	for at, p := range r.ConflictsAt {
		if at = strings.TrimPrefix(at, "."); len(at) > longest && isAtOrBelow(path, at) {
			policy, longest = p, len(at)
		}
	}
	return cmp.Or(policy, FailOnConflict)
}

// isAtOrBelow reports whether a path is another path or below it. Both may have a leading dot.
func isAtOrBelow(path, at string) bool {
	return isBelow(strings.TrimPrefix(path, "."), strings.TrimPrefix(at, "."))
}

// takeBack is the paths of an [AnnotationTakeBack].
type takeBack []string

// fieldsToTakeBack returns the paths of the annotation of an object, and whether the annotation is to be removed. An
// annotation that is desired stays.
func fieldsToTakeBack(document map[string]any, live client.Object) (paths takeBack, remove bool) {
	value, desired, _ := unstructured.NestedString(document, "metadata", "annotations", AnnotationTakeBack)
	if !desired {
		if value, remove = live.GetAnnotations()[AnnotationTakeBack]; !remove {
			return nil, false
		}
	}
	for path := range strings.SplitSeq(value, ",") {
		paths = append(paths, strings.TrimSpace(path))
	}
	return paths, remove
}

func (t takeBack) has(path string) bool {
	return slices.ContainsFunc(t, func(at string) bool { return at == "*" || at != "" && isAtOrBelow(path, at) })
}

// withoutRequest removes the annotation that asked to take fields back from an object.
func (a application[T]) withoutRequest(stored T, taken []string) (T, error) {
	a.log.Info("took fields back from other clients", "resource", identify(stored), "fields", slices.Compact(slices.Sorted(
		slices.Values(taken))), "requested", stored.GetAnnotations()[AnnotationTakeBack])
	// The tests protect a newer request. The apply has just changed the object, so other changes are likely.
	path := "/metadata/annotations/" + strings.ReplaceAll(AnnotationTakeBack, "/", "~1")
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": stored.GetUID()},
		{"op": "test", "path": path, "value": stored.GetAnnotations()[AnnotationTakeBack]},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return stored, err
	}
	cleared := stored.DeepCopyObject().(T)
	err = a.config.Patch(a.ctx, cleared, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(a.owner))
	switch {
	case apierrs.IsInvalid(err): // a test failed; the reason says nothing about the child
		return stored, fmt.Errorf("the annotation %s has changed: %v", AnnotationTakeBack, err) //nolint:errorlint // see above
	case err != nil:
		return stored, fmt.Errorf("removing the annotation %s: %w", AnnotationTakeBack, err)
	}
	return cleared, nil
}

// fieldConflicts returns the conflicts that the API server reports.
func fieldConflicts(err error) (conflicts []FieldConflict) {
	status := apierrs.APIStatus(nil)
	if !errors.As(err, &status) || !apierrs.IsConflict(err) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			owner := strings.TrimPrefix(cause.Message, "conflict with ")
			conflicts = append(conflicts, FieldConflict{Path: cause.Field, Owner: owner})
		}
	}
	return sortedConflicts(conflicts)
}

func sortedConflicts(conflicts []FieldConflict) []FieldConflict {
	slices.SortFunc(conflicts, func(a, b FieldConflict) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Owner, b.Owner))
	})
	return conflicts
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// owner returns the field owner of a request.
func (r *ApplyingObjectManager[T]) owner(ctx context.Context) string {
	owner := r.FieldOwner
	if owner == "" {
		owner = fieldOwner(ctx)
	}
	if owner == "" {
		return r.formerDefault(ctx)
	}
	return owner[:min(len(owner), maxFieldOwner)]
}

// formerDefault returns the default field owner of earlier versions. It depends on names that authors change.
func (r *ApplyingObjectManager[T]) formerDefault(ctx context.Context) string {
	owner := cmp.Or(scopeFrom(ctx).controller, r.Name)
	return owner[:min(len(owner), maxFieldOwner)]
}

// formerOwners are the field managers whose fields are moved to the owner.
type formerOwners struct{ updates, applies sets.Set[string] }

// former returns the former owners of a request. Fields that another manager of this controller applies, with another
// owner, are not moved: without an own FieldOwner, a manager only moves what managers without FieldOwner have applied.
func (r *ApplyingObjectManager[T]) former(ctx context.Context, owner string) formerOwners {
	former := formerOwners{updates: sets.New(r.FormerOwners...), applies: sets.New(r.FormerOwners...)}
	var known []string
	if config := scopeFrom(ctx).originalConfig; config != nil {
		known = config.formerFieldOwners()
	}
	former.updates.Insert(known...)
	if created := fieldOwner(ctx); created != "" {
		former.updates.Insert(created)
		if r.FieldOwner == "" {
			former.applies.Insert(r.formerDefault(ctx))
		}
	}
	if r.FieldOwner == "" {
		former.applies.Insert(known...)
	}
	former.applies.Delete(owner)
	return former
}

// has reports whether the fields of an entry are to be moved.
func (f formerOwners) has(entry metav1.ManagedFieldsEntry) bool {
	switch {
	case entry.Subresource != "" || entry.FieldsV1 == nil:
		return false
	case entry.Operation == metav1.ManagedFieldsOperationApply:
		return f.applies.Has(entry.Manager)
	}
	return entry.Operation == metav1.ManagedFieldsOperationUpdate && f.updates.Has(entry.Manager)
}

// beforeFirstApply is the field manager to which the API server attributes the fields of an object without managed
// fields when the object is applied for the first time. No client has this name.
const beforeFirstApply = "before-first-apply"

func isBeforeFirstApply(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == beforeFirstApply && entry.Operation == metav1.ManagedFieldsOperationUpdate
}

// moveFields returns the managed fields in which the owner has the fields of its former owners, and the names of these.
// If the owner has applied the object, the fields from before the first apply have no owner any more: the object is a
// child, and it is unknown which client has set them.
func moveFields(entries []metav1.ManagedFieldsEntry, former formerOwners, owner string) (
	moved []metav1.ManagedFieldsEntry, from []string, err error,
) {
	holder := &metav1.PartialObjectMetadata{}
	for _, entry := range entries {
		holder.ManagedFields = append(holder.ManagedFields, *entry.DeepCopy()) // csaupgrade changes the fields in place
	}
	names := []string{} // of the entries to move, each once
	for i := range holder.ManagedFields {
		entry := &holder.ManagedFields[i]
		if !former.has(*entry) {
			continue
		}
		from = append(from, entry.Manager)
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			// csaupgrade moves the fields of updates. The manager may have both.
			entry.Operation, entry.Manager = metav1.ManagedFieldsOperationUpdate, entry.Manager+" (Apply)"
		}
		names = append(names, entry.Manager)
	}
	for _, name := range slices.Compact(names) {
		if err := csaupgrade.UpgradeManagedFields(holder, sets.New(name), owner); err != nil {
			return nil, nil, fmt.Errorf("moving the fields of %q to %q: %w", name, owner, err)
		}
	}
	if _, ours := ownership.EntryOf(holder.ManagedFields, owner); ours {
		before := len(holder.ManagedFields)
		holder.ManagedFields = slices.DeleteFunc(holder.ManagedFields, isBeforeFirstApply)
		if len(holder.ManagedFields) < before {
			from = append(from, beforeFirstApply)
		}
	}
	return holder.ManagedFields, from, nil
}

// move moves the fields of former owners of an object to the owner, with one request if there are any.
func (a application[T]) move(live T) (T, error) {
	fields, from, err := moveFields(live.GetManagedFields(), a.manager.former(a.ctx, a.owner), a.owner)
	if err != nil || len(from) == 0 {
		return live, err
	}
	// A version in the patch makes the API server refuse it if the object has changed since.
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": fields},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return live, err
	}
	moved := live.DeepCopyObject().(T)
	err = a.config.Patch(a.ctx, moved, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(a.owner))
	if err != nil {
		return live, fmt.Errorf("moving the fields of %q to %q: %w", from, a.owner, err)
	}
	a.log.Info("moved the fields of former owners", "resource", identify(moved), "owner", a.owner, "former", from)
	return moved, nil
}

// applies records what a request applies, to find steps that take each other's fields. It is safe for concurrent use.
type applies struct {
	mu      sync.Mutex
	objects map[appliedName]appliedBy
}

// appliedName is an object and an owner of its fields.
type appliedName struct {
	owner string
	cache cache.Cache
	schema.GroupKind
	types.NamespacedName
}

// appliedBy is the manager that has applied an object, and what it has applied.
type appliedBy struct {
	manager any
	name    string
	desired client.Object
}

// alternation is the two desired objects that one request has applied one after the other.
type alternation struct {
	in            *applies
	first, second client.Object
}

// mustBeAlone returns an error if another step applies other fields of the object with the same owner: each apply
// removes the fields of the other. A manager that applies two desired objects in one request is only refused when it
// repeats both in the next request. Otherwise the second one may replace the first.
func (a application[T]) mustBeAlone() error {
	root := requestFrom(a.ctx)
	if root == nil {
		return nil
	}
	request := &root.applies
	gvk, err := a.config.GroupVersionKindFor(a.desired)
	if err != nil {
		return nil // the request returns a better error
	}
	name := appliedName{a.owner, a.config.cache, gvk.GroupKind(), client.ObjectKeyFromObject(a.desired)}
	this := appliedBy{manager: a.manager, name: a.manager.Name, desired: a.desired}
	request.mu.Lock()
	defer request.mu.Unlock()
	other, ok := request.objects[name]
	if !ok {
		if request.objects == nil {
			request.objects = map[appliedName]appliedBy{}
		}
		request.objects[name] = this
		return nil
	}
	if equalObjects(other.desired, this.desired) {
		return nil
	}
	if other.manager == this.manager {
		found := alternation{request, other.desired, this.desired}
		last, known := a.manager.alternations.swap(name, found)
		if !known || last.in == request || !equalObjects(last.first, found.first) ||
			!equalObjects(last.second, found.second) {
			return nil
		}
	}
	return fmt.Errorf("%s is applied by two steps with the field owner %q: each removes the fields of the other. "+
		"Set another FieldOwner of ApplyingObjectManager %q, and use a manager for each step (the other is %q)",
		identify(a.desired), a.owner, this.name, other.name)
}

func equalObjects(a, b client.Object) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && difference.Equal(a, b)
}

// alternations holds the last alternation of each object. It is safe for concurrent use. Steps rarely apply two desired
// objects.
type alternations struct {
	mu   sync.Mutex
	last map[appliedName]alternation
}

// maxAlternations limits the memory of alternations.
const maxAlternations = 1000

// swap stores an alternation and returns the one before.
func (a *alternations) swap(name appliedName, now alternation) (last alternation, known bool) {
	now.first, now.second = copied(now.first), copied(now.second)
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known = a.last[name]
	if a.last == nil || len(a.last) >= maxAlternations {
		a.last = map[appliedName]alternation{}
	}
	a.last[name] = now
	return last, known
}

func copied(obj client.Object) client.Object { return obj.DeepCopyObject().(client.Object) }

// appliedMemory remembers, for each applied object, the last version that is in sync, and how the stored object differs
// from the desired one although it is: webhooks may change what was applied.
type appliedMemory[T client.Object] struct {
	remembered[appliedObject[T]]
}

type appliedObject[T client.Object] struct {
	desired T
	version string
	// generation and metadata identify what can differ. The generation is 0 if the kind has none.
	generation  int64
	metadata    uint64
	differences []storedDifference
	// until is when this expires, see [keptFor]. It is zero if it does not.
	until time.Time
}

func (a appliedObject[T]) isExpected() bool { return a.until.IsZero() || time.Now().Before(a.until) }

// storedDifference is a difference without its values.
type storedDifference struct {
	path   string
	reason ownership.Reason
	stored uint64
}

// of returns what is known about an object, if it was for the same desired object.
func (m *appliedMemory[T]) of(obj, desired T) (known appliedObject[T], ok bool) {
	if obj.GetUID() == "" {
		return known, false
	}
	return m.get(obj.GetUID(), func(a appliedObject[T]) bool {
		return a.isExpected() && difference.Equal(a.desired, desired)
	})
}

// inSync reports whether an object is known to need no request for the desired object: the version is known, or nothing
// but its status has changed since.
func (m *appliedMemory[T]) inSync(obj, desired T) bool {
	known, ok := m.of(obj, desired)
	if !ok || known.version == "" {
		return false
	}
	return known.version == obj.GetResourceVersion() || known.generation != 0 &&
		known.generation == obj.GetGeneration() && known.metadata == sumOfMetadata(obj)
}

var metadataSeed = maphash.MakeSeed()

// sumOfMetadata returns a hash of the metadata that clients can change, and of what is owned. Changes of the status
// only, also of its owners, do not change it.
func sumOfMetadata(obj client.Object) (sum uint64) {
	add := func(parts ...string) {
		var h maphash.Hash
		h.SetSeed(metadataSeed)
		for _, part := range parts {
			_, _ = h.WriteString(part)
			_ = h.WriteByte(0)
		}
		sum += h.Sum64() // maps have no order
	}
	for key, value := range obj.GetLabels() {
		add("label", key, value)
	}
	for key, value := range obj.GetAnnotations() {
		add("annotation", key, value)
	}
	for i, finalizer := range obj.GetFinalizers() {
		add("finalizer", strconv.Itoa(i), finalizer)
	}
	for i, o := range obj.GetOwnerReferences() {
		flags := fmt.Sprint(i, o.Controller != nil && *o.Controller, o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion)
		add("owner", flags, o.APIVersion, o.Kind, o.Name, string(o.UID))
	}
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "status" && entry.FieldsV1 != nil {
			add("fields", entry.Manager, string(entry.Operation), entry.Subresource, entry.FieldsV1.GetRawString())
		}
	}
	return sum
}

// settled reports whether the server is known to store the desired object with these differences.
func (m *appliedMemory[T]) settled(obj, desired T, differences []ownership.Difference) bool {
	known, ok := m.of(obj, desired)
	return ok && slices.Equal(known.differences, withoutValues(differences))
}

// wasKept reports whether the API server kept values of an object when the same object was applied before.
func (m *appliedMemory[T]) wasKept(obj, desired T) bool {
	found, ok := m.store().Get(obj.GetUID())
	if !ok {
		return false
	}
	known := found.(rememberedValue[appliedObject[T]]).value
	return !known.until.IsZero() && difference.Equal(known.desired, desired)
}

// limited records that an object is in sync until [keptFor] is over: the API server kept values of it.
func (m *appliedMemory[T]) limited(obj, desired T, differences []ownership.Difference) {
	known := m.entry(obj, desired, differences)
	known.until = time.Now().Add(keptFor)
	m.putFor(obj.GetUID(), known, stateTTL)
}

// verified records that an object is in sync although it differs.
func (m *appliedMemory[T]) verified(obj, desired T, differences []ownership.Difference) {
	if obj.GetUID() == "" {
		return
	}
	entry := m.entry(obj, desired, differences)
	if known, ok := m.of(obj, desired); ok && !known.until.IsZero() && slices.Equal(known.differences, entry.differences) {
		entry.until = known.until
		m.putFor(obj.GetUID(), entry, stateTTL)
		return
	}
	m.put(obj.GetUID(), entry)
}

func (m *appliedMemory[T]) entry(obj, desired T, differences []ownership.Difference) appliedObject[T] {
	known := appliedObject[T]{
		desired: desired.DeepCopyObject().(T), version: obj.GetResourceVersion(), generation: obj.GetGeneration(),
		differences: withoutValues(differences),
	}
	if known.generation != 0 {
		known.metadata = sumOfMetadata(obj)
	}
	return known
}

func withoutValues(differences []ownership.Difference) []storedDifference {
	stored := make([]storedDifference, len(differences))
	for i, d := range differences {
		stored[i] = storedDifference{d.Path, d.Reason, hotloop.HashValue(d.Stored)}
	}
	return stored
}

// maxFieldOwner is the limit of the API server for names of field managers.
const maxFieldOwner = 128

// fieldOwnerPrefix begins the default field owners.
const fieldOwnerPrefix = "trueup/"

// programSuffix ends the default field owners of this program. Two programs that reconcile one kind must have different
// field owners, and the versions of one program the same. So it is derived from the path of the Go module of the main
// package, without its major version. It is "" if the path is unknown: some build systems do not record it.
var programSuffix = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path == "" {
		return ""
	}
	return "@" + shortHash(majorVersion.ReplaceAllString(info.Main.Path, ""))
})

// majorVersion is the end of the path of a module that is not of the first major version.
var majorVersion = regexp.MustCompile(`[./]v\d+$`)

// shortHash returns eight hexadecimal digits.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// fieldOwner returns the name under which the API server records the fields that a root reconciler writes to children.
// It says which objects the root has made. So it does not depend on names that an author may change: not on the name of
// a reconciler, nor on the file name of the program, which is `manager` for many programs. It returns "" outside of a
// root reconciler.
func fieldOwner(ctx context.Context) string {
	s := scopeFrom(ctx)
	if s.originalConfig == nil || s.originalConfig.Client == nil || nilcheck.IsNilPointer(s.originalResourceType) {
		return ""
	}
	if owner := s.originalConfig.FieldOwner; owner != "" {
		return owner
	}
	gvk, err := s.originalConfig.GroupVersionKindFor(s.originalResourceType)
	if err != nil {
		return ""
	}
	if s.single {
		return limitFieldOwner(ofKind(gvk.GroupKind()) + "/" + s.request.String() + programSuffix())
	}
	return DefaultFieldOwner(gvk.GroupKind())
}

// DefaultFieldOwner returns the name under which a [ResourceReconciler] in this program writes the children of
// resources of a kind, if [Config.FieldOwner] is not set. Tests need it for given objects that are in sync.
func DefaultFieldOwner(resource schema.GroupKind) string {
	return limitFieldOwner(ofKind(resource) + programSuffix())
}

func ofKind(kind schema.GroupKind) string {
	owner := fieldOwnerPrefix + strings.ToLower(kind.Kind)
	if kind.Group != "" {
		owner += "." + kind.Group
	}
	return owner
}

// isDefaultFieldOwner reports whether a name is a default field owner of a root in this program.
func isDefaultFieldOwner(name string) bool {
	return strings.HasPrefix(name, fieldOwnerPrefix) && strings.HasSuffix(name, programSuffix())
}

// limitFieldOwner replaces the end of a name that is too long with a hash.
func limitFieldOwner(owner string) string {
	if len(owner) <= maxFieldOwner {
		return owner
	}
	end := "-" + shortHash(owner)
	return owner[:maxFieldOwner-len(end)] + end
}

// WithFormerFieldOwners returns a copy of the config that knows the field owners under which earlier versions of this
// controller wrote: objects that they made count as made by this controller, see [ChildReconciler]. Without a name of
// its own, a program writes as the file name of its binary, for example `manager`. Do not name a field owner that
// another program uses: its objects could be deleted.
func (c Config) WithFormerFieldOwners(owners ...string) Config {
	former := append(slices.Clone(c.formerFieldOwners()), owners...)
	c.formerOwners = &former
	return c
}

func (c Config) formerFieldOwners() []string {
	if c.formerOwners == nil {
		return nil
	}
	return *c.formerOwners
}
