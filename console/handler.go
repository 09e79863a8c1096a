// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/graph"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// pageSize is the number of objects on a page.
const pageSize = 100

// Handler returns a handler that serves the console at "/". It checks no permissions. Links are relative, so it can be
// served below any path with [http.StripPrefix]; then requests without the slash after that path must be redirected, as
// [http.ServeMux] does. It is safe for concurrent use.
//
// Hubs are the hubs of the managers whose controllers the recorder observes. They are needed for the trees of
// reconcilers: without them, only executed steps are shown.
//
// It has no page of permissions, which needs a manager: use [AddToManager].
func Handler(r *recorder.Recorder, hubs ...*observe.Hub) http.Handler {
	return newHandler(r, nil, nil, hubs...)
}

func newHandler(
	r *recorder.Recorder, p *permissions, elected <-chan struct{}, hubs ...*observe.Hub,
) http.Handler {
	h := &handler{recorder: r, permissions: p, hubs: hubs, elected: elected, streams: make(chan struct{}, maxStreams)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.page(h.objects))
	mux.HandleFunc("GET /objects/{controller}/{namespace}/{name}", h.page(h.object))
	mux.HandleFunc("GET /objects/{controller}/{namespace}/{name}/recording", h.recording)
	mux.HandleFunc("GET /controllers", h.page(h.controllers))
	mux.HandleFunc("GET /controllers/{name}", h.page(h.controller))
	mux.HandleFunc("GET /clusters", h.page(h.clusters))
	if p != nil {
		mux.HandleFunc("GET /permissions", h.page(p.load))
	}
	mux.Handle("GET /static/", cached(http.FileServerFS(staticFiles)))
	mux.HandleFunc("GET /", h.page(func(*http.Request) (page, bool) { return page{}, false }))
	return secure(mux)
}

type handler struct {
	recorder    *recorder.Recorder
	permissions *permissions // optional
	hubs        []*observe.Hub
	queues      queues
	streams     chan struct{} // a token for each stream
	// elected is closed when the manager reconciles. It is nil if that is not known.
	elected <-chan struct{}
}

// page is what is shown at a path.
type page struct {
	// Template is the name of the template of the content, and Title is the title of the page.
	Template, Title string
	// Search is the content of the search field, and IsFiltered reports whether only some objects are selected.
	Search     string
	IsFiltered bool
	// Previous and Next are the queries of the neighboring pages, or "".
	Previous, Next string
	// Base is the relative path to the root of the console.
	Base string
	Now  time.Time
	// HasPermissions and HasClusters report whether there are pages of permissions and of clusters.
	HasPermissions, HasClusters bool
	// CanRecord reports whether there are recordings of objects.
	CanRecord bool
	// Data is what is encoded as JSON, and shown by the template.
	Data any
}

// load returns the page of a request. It reports false if it does not exist.
type load func(*http.Request) (page, bool)

// page serves a page in the requested format.
func (h *handler) page(content load) http.HandlerFunc {
	load := func(r *http.Request) (page, bool) {
		p, ok := content(r)
		p.HasPermissions, p.HasClusters = h.permissions != nil, len(h.recorder.Clusters()) > 0
		return p, ok
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Cache-Control", "no-store")
		switch format(r.Header.Get("Accept")) {
		case formatJSON:
			writeJSON(w, r, load)
		case formatStream:
			h.stream(w, r, load)
		default:
			writeHTML(w, r, load)
		}
	}
}

const (
	formatHTML   = "text/html"
	formatJSON   = "application/json"
	formatStream = "text/event-stream"
)

// format returns the first format in an Accept header that is supported.
func format(accept string) string {
	for _, part := range strings.Split(accept, ",") {
		name, _, _ := strings.Cut(part, ";")
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case formatHTML, formatJSON, formatStream:
			return name
		}
	}
	return formatHTML
}

func writeJSON(w http.ResponseWriter, r *http.Request, load load) {
	p, ok := load(r)
	w.Header().Set("Content-Type", formatJSON)
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		p.Data = map[string]string{"error": "not found"}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(p.Data) // the client may have gone away
}

func writeHTML(w http.ResponseWriter, r *http.Request, load load) {
	p, ok := load(r)
	if !ok {
		p.Template, p.Title = "missing", "Not found"
	}
	p.Base, p.Now = base(r), time.Now()
	content, err := render("layout", p)
	if err != nil {
		http.Error(w, "the page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", formatHTML+"; charset=utf-8")
	if !ok {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write(content) // the client may have gone away
}

func render(name string, p page) ([]byte, error) {
	var b bytes.Buffer
	err := templates[p.Template].ExecuteTemplate(&b, name, p)
	return b.Bytes(), err
}

// templates are the templates of the pages, each with the layout.
var templates = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	for _, name := range []string{"objects", "object", "controllers", "controller", "clusters", "permissions", "missing"} {
		all[name] = template.Must(template.New(name).Funcs(functions).ParseFS(
			templateFiles, "templates/layout.html", "templates/"+name+".html",
		))
	}
	return all
}()

// base returns the relative path from a page to the root of the console.
func base(r *http.Request) string {
	depth := strings.Count(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if depth == 0 {
		return "./"
	}
	return strings.Repeat("../", depth)
}

// cached lets browsers keep static files for a while.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") { // no lists of files
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "private, max-age=300")
		next.ServeHTTP(w, r)
	})
}

// secure sets headers that keep browsers from running, framing or sending anything else.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
			"img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// Objects is the JSON of the page of objects.
type Objects struct {
	// Objects are those that the parameters q, controller, kind and name select, the worst first: at most 100, starting
	// at the parameter offset.
	Objects []recorder.Object `json:"objects"`
	// Total is the number of objects that are selected, and Offset is the index of the first one in Objects.
	Total  int `json:"total"`
	Offset int `json:"offset"`
	// Known, Trouble and NotReady are the number of all objects, of those in trouble, and of those whose condition Ready
	// is False.
	Known    int `json:"known"`
	Trouble  int `json:"trouble"`
	NotReady int `json:"notReady"`
	// Clusters is the number of clusters, without those that are gone, and ClustersNotReady of those that are not ready.
	// Both are 0 if the program reconciles the objects of one cluster.
	Clusters         int `json:"clusters,omitempty"`
	ClustersNotReady int `json:"clustersNotReady,omitempty"`
	// Unstarted are the controllers that wait for caches, by name, with what they wait for.
	Unstarted map[string][]recorder.CacheWait `json:"unstarted,omitempty"`
	// Occupied are the controllers all of whose workers have been busy for some seconds, by name.
	Occupied map[string]Occupied `json:"occupied,omitempty"`
	// Standby reports whether this replica does not reconcile, because it is not elected as the leader.
	Standby bool `json:"standby,omitempty"`
}

// Occupied are the reconciles that have kept all workers of a controller busy for some seconds. Meanwhile the
// controller reconciles no other object.
type Occupied struct {
	Workers int `json:"workers"`
	// Running are the first of these reconciles.
	Running []recorder.Unfinished `json:"running"`
}

const (
	// occupiedAfter is the time after which busy workers are shown.
	occupiedAfter = 5 * time.Second
	// maxRunning limits the reconciles in Occupied.
	maxRunning = 5
)

// occupied reports whether all workers of a controller have been busy for some seconds, and with what.
func (h *handler) occupied(controller string) (Occupied, bool) {
	queue := h.queues.of(controller)
	if queue == nil || queue.Workers == 0 {
		return Occupied{}, false
	}
	running := h.recorder.Unfinished(controller)
	if len(running) < queue.Workers || time.Since(running[queue.Workers-1].Since) < occupiedAfter {
		return Occupied{}, false
	}
	return Occupied{queue.Workers, running[:min(len(running), maxRunning)]}, true
}

// standby reports whether the manager does not reconcile, because it is not elected as the leader.
func (h *handler) standby() bool {
	if h.elected == nil {
		return false
	}
	select {
	case <-h.elected:
		return false
	default:
		return true
	}
}

func (h *handler) objects(r *http.Request) (page, bool) {
	parameters := r.URL.Query()
	offset, _ := strconv.Atoi(parameters.Get("offset")) // 0 if it is not a number
	query := recorder.Query{
		Search: parameters.Get("q"), Controller: parameters.Get("controller"), Kind: parameters.Get("kind"),
		Name: parameters.Get("name"), Offset: max(0, offset), Limit: pageSize,
	}
	data := Objects{Offset: query.Offset, Standby: h.standby()}
	data.Objects, data.Total = h.recorder.Objects(query)
	if data.Objects == nil {
		data.Objects = []recorder.Object{}
	}
	for _, c := range h.recorder.Controllers() {
		data.Known += c.Objects
		data.Trouble += c.Trouble
		data.NotReady += c.NotReady
		if len(c.CacheWaits) > 0 {
			if data.Unstarted == nil {
				data.Unstarted = map[string][]recorder.CacheWait{}
			}
			data.Unstarted[c.Name] = c.CacheWaits
		}
		if occupied, ok := h.occupied(c.Name); ok {
			if data.Occupied == nil {
				data.Occupied = map[string]Occupied{}
			}
			data.Occupied[c.Name] = occupied
		}
	}
	for _, c := range h.recorder.Clusters() {
		switch c.State {
		case observe.ClusterGone:
			continue
		case observe.ClusterPaused, observe.ClusterStarting:
			data.ClustersNotReady++
		}
		data.Clusters++
	}
	p := page{Template: "objects", Title: "Objects", Search: query.Search, Data: data}
	p.IsFiltered = query.Search != "" || query.Controller != "" || query.Kind != "" || query.Name != ""
	if query.Offset > 0 {
		p.Previous = withOffset(parameters, max(0, query.Offset-pageSize))
	}
	if query.Offset+pageSize < data.Total {
		p.Next = withOffset(parameters, query.Offset+pageSize)
	}
	return p, true
}

func withOffset(parameters url.Values, offset int) string {
	parameters.Set("offset", strconv.Itoa(offset))
	return "?" + parameters.Encode()
}

// clusterScope stands for the namespace of objects without a namespace in paths. It is not a valid name of a namespace.
const clusterScope = "-"

// Object is the JSON of the page of an object.
type Object struct {
	recorder.History
	// Conditions are the status conditions that have changed, those that are not True first.
	Conditions []Condition `json:"conditions"`
	// Related are the objects that the reconciles were caused by, wrote, or read from the API server.
	Related []Related `json:"related"`
	// Problems are the problems of the controller.
	Problems []recorder.Problem `json:"problems,omitempty"`
	// Occupied is set if all workers of the controller are busy with other objects.
	Occupied *Occupied `json:"occupied,omitempty"`
}

func nameOf(r *http.Request) types.NamespacedName {
	object := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if object.Namespace == clusterScope {
		object.Namespace = ""
	}
	return object
}

func (h *handler) object(r *http.Request) (page, bool) {
	history, ok := h.recorder.Object(r.PathValue("controller"), nameOf(r))
	data := Object{History: history, Conditions: conditionsOf(history), Related: h.relatedTo(history)}
	for _, c := range h.recorder.Controllers() {
		if c.Name == history.Controller {
			data.Problems = c.Problems
		}
	}
	if occupied, ok := h.occupied(history.Controller); ok && history.RunningSince.IsZero() {
		data.Occupied = &occupied
	}
	return page{
		Template: "object", Title: history.Object.Object.String(), Data: data, CanRecord: h.recorder.KeepsObjects(),
	}, ok
}

// Controllers is the JSON of the page of controllers.
type Controllers struct {
	Controllers []recorder.Controller `json:"controllers"`
}

func (h *handler) controllers(*http.Request) (page, bool) {
	data := Controllers{h.recorder.Controllers()}
	return page{Template: "controllers", Title: "Controllers", Data: data}, true
}

// Clusters is the JSON of the page of clusters, see package clusters.
type Clusters struct {
	Clusters []recorder.Cluster `json:"clusters"`
}

// clusters does not exist for a program that reconciles the objects of one cluster.
func (h *handler) clusters(*http.Request) (page, bool) {
	data := Clusters{h.recorder.Clusters()}
	return page{Template: "clusters", Title: "Clusters", Data: data}, len(data.Clusters) > 0
}

// Controller is the JSON of the page of a controller.
type Controller struct {
	recorder.Controller
	// Reconcilers is the tree of the reconcilers, or the executed steps if the reconcilers are unknown.
	Reconcilers []*Reconciler `json:"reconcilers"`
	// Wired reports whether Reconcilers is the tree of the reconcilers.
	Wired bool `json:"wired"`
	// Queue is nil if it is unknown.
	Queue *Queue `json:"queue,omitempty"`
}

func (h *handler) controller(r *http.Request) (page, bool) {
	for _, c := range h.recorder.Controllers() {
		if c.Name == r.PathValue("name") {
			data := Controller{Controller: c, Queue: h.queues.of(c.Name)}
			root := h.root(c.Name)
			data.Reconcilers, data.Wired = wiring(root, c.Steps), root != nil
			return page{Template: "controller", Title: "Controller " + c.Name, Data: data}, true
		}
	}
	return page{}, false
}

// root returns the description of the reconcilers of a controller. It is nil if they are unknown.
func (h *handler) root(controller string) *graph.Node {
	for _, hub := range h.hubs {
		if root := described(hub.Reconciler(controller)); root != nil {
			return root
		}
	}
	return nil
}

// described returns the description of a reconciler, which may be nil. It is nil if it does not describe itself.
func described(reconciler reconcile.Reconciler) *graph.Node {
	if reconciler == nil {
		return nil
	}
	root := graph.Of(reconciler).Controllers[0]
	if root.Path == "" {
		return nil
	}
	return root
}
