// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Write writes a recording as indented JSON.
func Write(w io.Writer, r Recording) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // people read it
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// Read reads a recording. The error lists all that is wrong with it.
func Read(r io.Reader) (Recording, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return Recording{}, fmt.Errorf("read recording: %w", err)
	}
	var version struct {
		Version *int `json:"version"`
	}
	switch err := json.Unmarshal(data, &version); {
	case err != nil:
		return Recording{}, fmt.Errorf("read recording: not JSON of a recording: %w", err)
	case version.Version == nil:
		return Recording{}, errors.New("read recording: version is required; is this a recording?")
	case *version.Version != Version:
		return Recording{}, fmt.Errorf("read recording: version must be %d, got %d", Version, *version.Version)
	}
	var recording Recording
	if err := json.Unmarshal(data, &recording); err != nil {
		return Recording{}, fmt.Errorf("read recording: %w", err)
	}
	if err := recording.validate(); err != nil {
		return Recording{}, fmt.Errorf("read recording: %w", err)
	}
	return recording, nil
}

// ReadFile reads the recording in a file.
func ReadFile(name string) (Recording, error) {
	file, err := os.Open(name)
	if err != nil {
		return Recording{}, fmt.Errorf("read recording: %w", err)
	}
	defer func() { _ = file.Close() }()
	recording, err := Read(file)
	if err != nil {
		return Recording{}, fmt.Errorf("%s: %w", name, err)
	}
	return recording, nil
}

// validate returns all problems of a recording.
func (r *Recording) validate() error {
	v := validation{}
	v.named("object", r.Object)
	v.objects("before", r.Before)
	for i, run := range r.Runs {
		field := fmt.Sprintf("runs[%d]", i)
		switch run.Outcome {
		case "Changed", "NoOp", "Failed", "Panicked":
		default:
			v.problem("%s.outcome: must be Changed, NoOp, Failed or Panicked, got %q", field, run.Outcome)
		}
		v.objects(field+".objects", run.Objects)
		for n, call := range run.Calls {
			field := fmt.Sprintf("%s.calls[%d]", field, n)
			switch call.Verb {
			case "get", "list", "create", "update", "patch", "delete", "deletecollection":
			default:
				v.problem("%s.verb: unknown verb %q", field, call.Verb)
			}
			if call.Object.Kind == "" {
				v.problem("%s.object.kind is required", field)
			}
			v.objects(field+".objects", call.Objects)
		}
	}
	return errors.Join(v...)
}

// validation collects problems.
type validation []error

func (v *validation) problem(format string, args ...any) {
	*v = append(*v, fmt.Errorf(format, args...))
}

func (v *validation) named(field string, ref Ref) {
	if ref.Kind == "" {
		v.problem("%s.kind is required", field)
	}
	if ref.Name == "" {
		v.problem("%s.name is required", field)
	}
}

func (v *validation) objects(field string, objects []Object) {
	for i, obj := range objects {
		at := fmt.Sprintf("%s[%d]", field, i)
		v.named(at, obj.Ref)
		if len(obj.Content) == 0 {
			continue
		}
		var content map[string]any
		if err := json.Unmarshal(obj.Content, &content); err != nil {
			v.problem("%s.content: must be an object: %w", at, err)
		}
	}
}
