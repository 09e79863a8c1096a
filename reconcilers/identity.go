// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
	rtime "trueup.dev/time"
)

// noteUID records the UID of the reconciled resource. A root reconciler calls it when the UID is known, before it calls
// nested reconcilers.
func noteUID(ctx context.Context, uid types.UID) {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		s.uid = uid
	}
}

// isReconciled reports whether obj is the reconciled resource, even if the resource was cast to another type. Any other
// object, even with the same namespace and name, must be written with its own type. Unknown fields are not compared.
func (s *scope) isReconciled(obj client.Object) bool {
	if s.request != (Request{}) && client.ObjectKeyFromObject(obj) != s.request.NamespacedName {
		return false
	}
	original := s.originalResourceType
	if nilcheck.IsNilPointer(original) {
		return true
	}
	uid := s.uid
	if uid == "" {
		// A table test of a subreconciler sets the resource in the type.
		uid = original.GetUID()
	}
	sameUID := uid != "" && obj.GetUID() == uid
	if uid != "" && obj.GetUID() != "" && !sameUID {
		return false
	}
	return s.isOfReconciledKind(obj, sameUID)
}

// isOfReconciledKind compares groups and kinds. The kind in obj has precedence, because a cast keeps the kind with
// which the resource was loaded. Then the UID decides, then the scheme.
func (s *scope) isOfReconciledKind(obj client.Object, sameUID bool) bool {
	original := s.originalResourceType
	kind := obj.GetObjectKind().GroupVersionKind().GroupKind()
	loaded := original.GetObjectKind().GroupVersionKind().GroupKind()
	if reflect.TypeOf(obj) == reflect.TypeOf(original) {
		// A Go type represents one kind, unless objects of the type must carry their kind.
		return kind.Empty() || loaded.Empty() || kind == loaded
	}
	if loaded.Empty() {
		loaded = s.kindInScheme(original)
	}
	switch {
	case loaded.Empty():
		return sameUID
	case !kind.Empty():
		return kind == loaded
	case sameUID:
		return true
	}
	if kind = s.kindInScheme(obj); !kind.Empty() {
		return kind == loaded
	}
	return !nilcheck.IsNilPointer(s.resourceType) && reflect.TypeOf(obj) == reflect.TypeOf(s.resourceType)
}

// kindInScheme returns the kind of the Go type of an object, or an empty kind if no config knows the type.
func (s *scope) kindInScheme(obj client.Object) schema.GroupKind {
	for _, config := range []*Config{s.originalConfig, s.config} {
		if config == nil || config.Client == nil {
			continue
		}
		if gvk, err := config.GroupVersionKindFor(obj); err == nil {
			return gvk.GroupKind()
		}
	}
	return schema.GroupKind{}
}

// asLoaded returns an empty object of the type to write obj with, and the config to use. For the reconciled resource
// these are the original type and the original config. For any other object they are the type of obj and the current
// config.
func asLoaded(ctx context.Context, obj client.Object) (client.Object, Config, error) {
	s := scopeFrom(ctx)
	if s.isReconciled(obj) {
		config, err := RetrieveOriginalConfig(ctx)
		if nilcheck.IsNilPointer(s.originalResourceType) {
			return empty.Like(obj), config, err
		}
		return empty.Like(s.originalResourceType), config, err
	}
	config, err := RetrieveConfig(ctx)
	if err != nil {
		config, err = RetrieveOriginalConfig(ctx)
	}
	return empty.Like(obj), config, err
}

// identityAsLoaded is asLoaded that also sets the fields which a patch of the metadata and an event need.
func identityAsLoaded(ctx context.Context, obj client.Object) (client.Object, Config, error) {
	current, config, err := asLoaded(ctx, obj)
	if err != nil {
		return nil, config, err
	}
	current.SetNamespace(obj.GetNamespace())
	current.SetName(obj.GetName())
	current.SetUID(obj.GetUID())
	current.SetResourceVersion(obj.GetResourceVersion())
	current.SetGeneration(obj.GetGeneration())
	return current, config, nil
}

// origin is who made an object.
type origin struct {
	// here reports whether this controller made the object, or an earlier version of it, or whether it must be assumed
	// because no API server recorded who wrote the object.
	here bool
	// recorded reports whether the API server recorded that this controller made the object.
	recorded bool
	// adopted reports whether it took over an object of another client.
	adopted bool
	// managers are the names of the clients that wrote the object.
	managers []string
}

// fieldOwning is an object manager that writes as field owners of its own.
type fieldOwning interface {
	// fieldOwners returns the current name and the former ones.
	fieldOwners(ctx context.Context) []string
}

// fieldOwners implements [fieldOwning].
func (r *ApplyingObjectManager[T]) fieldOwners(ctx context.Context) []string {
	return append([]string{r.owner(ctx)}, r.FormerOwners...)
}

// fieldOwners implements [fieldOwning].
func (r *RecreatingObjectManager[T]) fieldOwners(ctx context.Context) []string {
	if manager, ok := r.Manager.(fieldOwning); ok {
		return manager.fieldOwners(ctx)
	}
	return nil
}

// fieldOwners are the names under which this controller and its earlier versions write objects with a manager.
func fieldOwners(ctx context.Context, manager any) []string {
	names := []string{}
	if owner := fieldOwner(ctx); owner != "" {
		names = append(names, owner)
	}
	if config := scopeFrom(ctx).originalConfig; config != nil {
		names = append(names, config.formerFieldOwners()...)
	}
	if manager, ok := manager.(fieldOwning); ok {
		names = append(names, manager.fieldOwners(ctx)...)
	}
	return names
}

// adoptingOwner returns the field owner of adoptions by a controller. It tells later versions that they did not make
// the object.
func adoptingOwner(ctx context.Context) string {
	owner := fieldOwner(ctx)
	if owner == "" {
		return ""
	}
	return limitFieldOwner(owner + " adopting")
}

// readOrigin returns the origin of an object that may have been read from a cache. Names are the field owners of this
// controller. If the cache has no managed fields, as in table tests and with a transformation that removes them, the
// object is read from the API server.
func readOrigin(ctx context.Context, config Config, obj client.Object, names []string) (origin, error) {
	entries := obj.GetManagedFields()
	if len(entries) == 0 && config.cache != nil && config.APIReader != nil {
		gvk, err := config.GroupVersionKindFor(obj)
		if err != nil {
			return origin{}, err
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(gvk)
		switch err := config.APIReader.Get(ctx, client.ObjectKeyFromObject(obj), live); {
		case apierrs.IsNotFound(err):
			return origin{}, nil
		case err != nil:
			return origin{}, err
		case live.GetUID() != obj.GetUID():
			return origin{}, nil
		}
		entries = live.GetManagedFields()
	}
	o := origin{here: len(entries) == 0}
	adopting := adoptingOwner(ctx)
	for _, entry := range entries {
		switch {
		case slices.Contains(names, entry.Manager):
			o.here, o.recorded = true, true
		case adopting != "" && entry.Manager == adopting:
			o.adopted = true
		}
		if !slices.Contains(o.managers, entry.Manager) {
			o.managers = append(o.managers, entry.Manager)
		}
	}
	slices.Sort(o.managers)
	return o, nil
}

// versionOrigin is the origin of an object in one version.
type versionOrigin struct {
	version string
	origin
}

// origin returns the origin of an object that the parent controls.
func (c *children[T, CT]) origin(ctx context.Context, obj CT) (origin, error) {
	known, found := c.origins.get(obj)
	if !found || known.version != obj.GetResourceVersion() {
		config := RetrieveConfigOrDie(ctx)
		read, err := readOrigin(ctx, config, obj, fieldOwners(ctx, c.manager))
		if err != nil {
			return read, err
		}
		known = versionOrigin{obj.GetResourceVersion(), read}
		if len(obj.GetManagedFields()) == 0 && config.cache != nil {
			now := rtime.RetrieveNow(ctx)
			c.origins.put(obj, known, now, now.Add(rememberedFor))
		}
	}
	if _, ok := c.managed.get(obj); ok {
		known.here, known.recorded = true, true
	}
	return known.origin, nil
}

// remember notes that an object has been the child. It only matters for objects that an earlier version made under
// another name, until they are next written.
func (c *children[T, CT]) remember(ctx context.Context, child CT) {
	if RetrieveConfigOrDie(ctx).cache == nil {
		return
	}
	own := RetrieveOriginalConfigOrDie(ctx).FieldOwner
	entries := child.GetManagedFields()
	if slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == own || own == "" && isDefaultFieldOwner(entry.Manager)
	}) {
		return
	}
	now := rtime.RetrieveNow(ctx)
	c.managed.put(child, struct{}{}, now, now.Add(rememberedFor))
}

// rememberedFor is how long it is remembered that an object has been the child. It is longer than the usual time
// between two reconciles of a resource.
const rememberedFor = 24 * time.Hour

// byThisProgram reports whether a program with the same file name wrote an object without naming a field owner, for
// example an earlier version of this one.
func (o origin) byThisProgram() bool {
	program, _, _ := strings.Cut(rest.DefaultKubernetesUserAgent(), "/")
	return slices.Contains(o.managers, program)
}

// writtenBy says in a warning which clients wrote an object, and what to do if one of them is this controller.
func writtenBy(managers []string) string {
	return fmt.Sprintf("Written by %s: if that was an earlier version of this controller, name it in "+
		"WithFormerFieldOwners", strings.Join(managers, ", "))
}

// holdsData reports whether objects of a kind often hold what no controller can compute again, such as a generated
// password.
func holdsData(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"},
		schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Kind: "Secret"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return true
	}
	return false
}

// orphans reports whether the children of an object that is being deleted stay, as `kubectl delete --cascade=orphan`
// asks for: the garbage collector removes the owner references.
func orphans(parent client.Object) bool {
	return parent.GetDeletionTimestamp() != nil &&
		controllerutil.ContainsFinalizer(parent, metav1.FinalizerOrphanDependents)
}

// isOwnedBy reports whether an object has an owner reference to another one.
func isOwnedBy(obj, owner client.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.GetUID()
	})
}

// carriers is a pool of blank objects of one Go type. To copy a part of an object, put the part into a blank object and
// call DeepCopy on it. The zero value is ready to use. It is safe for concurrent use.
type carriers struct{ pool sync.Pool }

// copyPart calls fill with a blank object of the Go type of obj and returns a deep copy of the result.
func (c *carriers) copyPart(obj client.Object, fill func(carrier reflect.Value)) client.Object {
	carrier, ok := c.pool.Get().(client.Object)
	if !ok {
		carrier = reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	}
	value := reflect.ValueOf(carrier).Elem()
	fill(value)
	copied := carrier.DeepCopyObject().(client.Object)
	value.SetZero()
	c.pool.Put(carrier)
	return copied
}

// controlBy sets owner as the controller of obj if obj has no controller. It is like
// controllerutil.SetControllerReference, but the type of the owner need not be in the scheme.
func controlBy(ctx context.Context, owner, obj client.Object) error {
	if metav1.GetControllerOfNoCopy(obj) != nil {
		return nil
	}
	gvk, err := ownerKind(ctx, owner)
	if err != nil {
		return fmt.Errorf("owner reference to %T: %w", owner, err)
	}
	if ns := owner.GetNamespace(); ns != "" {
		switch obj.GetNamespace() {
		case ns:
		case "":
			if namespaced, err := RetrieveConfigOrDie(ctx).IsObjectNamespaced(obj); err == nil && namespaced {
				return fmt.Errorf(
					"%s %q has no namespace: set it to the namespace of its owner, %q", typeName(obj), obj.GetName(), ns,
				)
			}
			return fmt.Errorf(
				"cluster-scoped resource must not have a namespace-scoped owner, owner's namespace %s%s", ns, noOwner,
			)
		default:
			return fmt.Errorf(
				"cross-namespace owner references are disallowed, owner's namespace %s, obj's namespace %s%s",
				ns, obj.GetNamespace(), noOwner,
			)
		}
	}

	ref := *metav1.NewControllerRef(owner, gvk)
	refs := obj.GetOwnerReferences()
	for i := range refs {
		if sameOwner(refs[i], ref) {
			refs[i] = ref
			obj.SetOwnerReferences(refs)
			return nil
		}
	}
	obj.SetOwnerReferences(append(refs, ref))
	return nil
}

// noOwner says what to do about a child that cannot have an owner reference. It follows the texts of
// controllerutil.SetControllerReference, which users' tests compare.
const noOwner = ": manage the child without one, with a Finalizer, ListOptions and OurChild"

// ownerKind returns the kind of an owner. For the reconciled resource it is the original kind: after a cast, the Go
// type may belong to another kind.
func ownerKind(ctx context.Context, owner client.Object) (schema.GroupVersionKind, error) {
	s := scopeFrom(ctx)
	if original := s.originalResourceType; !nilcheck.IsNilPointer(original) && s.originalConfig != nil &&
		s.isReconciled(owner) {
		if gvk, err := s.originalConfig.GroupVersionKindFor(original); err == nil {
			return gvk, nil
		}
	}
	return RetrieveConfigOrDie(ctx).GroupVersionKindFor(owner)
}

// sameOwner compares references like the API server: by group, kind and name, not by version.
func sameOwner(a, b metav1.OwnerReference) bool {
	aGV, aErr := schema.ParseGroupVersion(a.APIVersion)
	bGV, bErr := schema.ParseGroupVersion(b.APIVersion)
	return aErr == nil && bErr == nil && aGV.Group == bGV.Group && a.Kind == b.Kind && a.Name == b.Name
}

// ownerIndexField is the name of the cache index of objects by the UID of their controller.
const ownerIndexField = "trueup.dev/controller-uid"

// ownerIndexes holds the indexes by owner that the cache behind a Config has. With an index, a list of the children of
// one parent does not iterate over the children of all parents. All copies of a Config share it.
type ownerIndexes struct {
	indexer client.FieldIndexer
	// reads is the cache that the client reads from, if it is a client of controller-runtime.
	reads client.Reader
	hub   *observe.Hub

	mu sync.RWMutex
	// registered contains the indexes. The value is nil for an index that is read with the client.
	registered map[ownerIndex]indexedInformer
}

// indexedInformer is an informer of the cache of controller-runtime.
type indexedInformer interface {
	cache.Informer
	GetIndexer() toolscache.Indexer
}

// ownerIndex is an index of one kind, by the UID of the controller or by the label of an inventory.
type ownerIndex struct {
	field string
	kind  guard.Form
}

// inventoryIndexPrefix is followed by the key of the label.
const inventoryIndexPrefix = "trueup.dev/inventory/"

// values returns the indexed values of an object.
func (i ownerIndex) values(obj client.Object) []string {
	label, byInventory := strings.CutPrefix(i.field, inventoryIndexPrefix)
	if !byInventory {
		return controllerUID(obj)
	}
	if value, ok := obj.GetLabels()[label]; ok {
		return []string{value}
	}
	return nil
}

func newOwnerIndexes(of cluster.Cluster, hub *observe.Hub) *ownerIndexes {
	return &ownerIndexes{
		indexer: of.GetFieldIndexer(), reads: ctrlfields.CacheOf(of.GetClient()), hub: hub,
		registered: map[ownerIndex]indexedInformer{},
	}
}

// setUp registers an index. Obj is an object of its kind. If registration needs the API server, it is delayed until the
// controller starts, because setup must work without an API server. The caches of controller-runtime first request the
// resource of the kind from the API server.
func (x *ownerIndexes) setUp(ctx context.Context, bldr *Builder, index ownerIndex, obj client.Object) error {
	if x == nil || x.has(index) {
		return nil
	}
	if !isCache(x.indexer, obj) {
		if err := x.register(ctx, index, obj); err == nil || !isTemporary(err) {
			return err
		}
	}
	bldr.WatchesRawSource(&ownerIndexSource{indexes: x, index: index, object: obj, log: logr.FromContextOrDiscard(ctx)})
	return nil
}

// isCache reports whether the indexer of the kind of obj is a cache of controller-runtime. Registering an index then
// sends requests to the API server.
func isCache(indexer client.FieldIndexer, obj client.Object) bool {
	if routed, ok := indexer.(interface {
		CacheOf(obj client.Object) cache.Cache
	}); ok {
		indexer = routed.CacheOf(obj)
	}
	t := reflect.TypeOf(indexer)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t != nil && t.PkgPath() == reflect.TypeFor[cache.Options]().PkgPath()
}

// register adds an index. It can be called repeatedly for one index, also through several Configs with the same cache.
func (x *ownerIndexes) register(ctx context.Context, index ownerIndex, obj client.Object) error {
	if x.has(index) {
		return nil
	}
	informer, err := x.add(ctx, index, obj)
	// The index exists if another controller of the manager owns the same kind. Only this package uses the field name,
	// so the existing index is equal. The cache reports the conflict only in the error text.
	if err != nil && !strings.Contains(err.Error(), "indexer conflict") {
		return fmt.Errorf("index %s by owner: %w", index.kind.Kind, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.registered[index] = informer
	return nil
}

// add adds an index. IndexField adds two entries for each object, which need about 380 bytes each. So the objects of
// the same bucket share one entry, in all namespaces, if the client reads from one informer: the cache of several
// namespaces has an informer for each. It returns the informer then.
func (x *ownerIndexes) add(ctx context.Context, index ownerIndex, obj client.Object) (indexedInformer, error) {
	caches, ok := x.indexer.(interface {
		GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error)
	})
	if ok && index.field == ownerIndexField && isCache(x.indexer, obj) && any(x.reads) == any(x.indexer) {
		informer, err := caches.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		if single, ok := informer.(indexedInformer); ok {
			return single, single.AddIndexers(toolscache.Indexers{ownerIndexField: ownerBuckets})
		}
	}
	return nil, x.indexer.IndexField(ctx, obj, index.field, index.values)
}

// buckets is the number of buckets of an index by owner. With 100,000 children, 12 share one, and it takes less than a
// microsecond to find the child of an owner among them. Each needs about 50 bytes instead of 450.
const buckets = 1 << 13

var bucketSeed = maphash.MakeSeed()

func ownerBucket(owner types.UID) string {
	bucket := maphash.String(bucketSeed, string(owner)) % buckets
	return string([]byte{byte(bucket >> 8), byte(bucket)})
}

// ownerBuckets returns the bucket of the controller of an object.
func ownerBuckets(obj any) ([]string, error) {
	object, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("index by owner: unexpected %T", obj)
	}
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
		return []string{ownerBucket(ref.UID)}, nil
	}
	return nil, nil
}

func (x *ownerIndexes) has(index ownerIndex) bool {
	_, ok := x.find(index)
	return ok
}

// find reports whether an index is registered, and returns the informer that has it.
func (x *ownerIndexes) find(index ownerIndex) (in indexedInformer, ok bool) {
	if x == nil {
		return nil, false
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	in, ok = x.registered[index]
	return in, ok
}

// forget disables an index.
func (x *ownerIndexes) forget(index ownerIndex) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.registered, index)
}

func controllerUID(obj client.Object) []string {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return []string{string(ref.UID)}
	}
	return nil
}

// controlledBy restricts list options to the objects that owner controls. The list may contain objects of other
// namespaces than the one that is returned, unless it is empty. It returns false if the index does not exist, or if the
// options already have a field selector, because the index would replace it.
func (x *ownerIndexes) controlledBy(
	index ownerIndex, owner types.UID, opts []client.ListOption,
) (narrowed *client.ListOptions, namespace string, ok bool) {
	in, ok := x.find(index)
	if !ok {
		return nil, "", false
	}
	narrowed = (&client.ListOptions{}).ApplyOptions(opts)
	if narrowed.FieldSelector != nil && !narrowed.FieldSelector.Empty() {
		return nil, "", false
	}
	narrowed.FieldSelector = fields.OneTermEqualSelector(ownerIndexField, string(owner))
	if in != nil {
		narrowed.FieldSelector = ownerSelector{narrowed.FieldSelector, owner, index.kind.GroupVersionKind, in}
		namespace, narrowed.Namespace = narrowed.Namespace, ""
	}
	return narrowed, namespace, true
}

// ownerIndexSource registers an owner index when its controller starts, before the workers start. It is a source
// because a controller waits for its sources. It delivers no events.
type ownerIndexSource struct {
	indexes *ownerIndexes
	index   ownerIndex
	object  client.Object
	log     logr.Logger
}

var (
	_ source.SyncingSource = (*ownerIndexSource)(nil)
	_ fmt.Stringer         = (*ownerIndexSource)(nil)
)

func (s *ownerIndexSource) String() string {
	return fmt.Sprintf("index of %s by owner", s.index.kind.Kind)
}

// Start does nothing. It must not block.
func (s *ownerIndexSource) Start(context.Context, workqueue.TypedRateLimitingInterface[Request]) error {
	return nil
}

// WaitForSync registers the index. It retries while the API server is unavailable or does not serve the kind. It stops
// shortly before the deadline of ctx: all sources share the deadline, and the other sources do not report the cause.
func (s *ownerIndexSource) WaitForSync(ctx context.Context) error {
	limited := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
		defer cancel()
	}
	err := lifecycle.Retry(limited, func(context.Context) error {
		return s.indexes.register(ctx, s.index, s.object)
	}, func(err error, failures int) bool {
		if !isTemporary(err) {
			return false
		}
		hubOr(s.indexes.hub).Report(ctx, &observe.AttemptFailed{
			Attempt: observe.IndexOwners, Kind: s.index.kind.GroupKind(), Err: err,
		})
		if failures == 1 {
			s.log.Info("unable to index children by owner yet, trying again", "kind", s.index.kind.Kind, "reason", err.Error())
		}
		return true
	})
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}

// isTemporary reports whether an error may disappear when the API server is available or serves the kind.
func isTemporary(err error) bool {
	var (
		sent    *url.Error
		network net.Error
		status  apierrs.APIStatus
	)
	return meta.IsNoMatchError(err) || errors.As(err, &sent) || errors.As(err, &network) || errors.As(err, &status)
}
