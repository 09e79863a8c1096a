// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trueup.dev/external"
)

// Directory is a [System] that writes a file <target>/<id>.json below a directory for each backup, and a file
// accounts/<id> for each account. The file of a backup contains the request, not the data of the database: replace
// Directory with a client of your backup service.
type Directory struct {
	path string
}

var _ System = (*Directory)(nil)

// NewDirectory returns a Directory. The first backup creates the directory.
func NewDirectory(path string) *Directory {
	return &Directory{path: path}
}

// Take implements [System]. A backup is complete when its file exists.
func (d *Directory) Take(ctx context.Context, request Request) (bool, error) {
	file := filepath.Join(request.Target, request.ID+".json")
	if !filepath.IsLocal(file) {
		return false, fmt.Errorf("target %q and id %q are outside of the directory", request.Target, request.ID)
	}
	file = filepath.Join(d.path, file)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	if external.Announce(ctx, "take the backup %s", file) {
		return true, nil
	}
	content, err := json.Marshal(request)
	if err != nil {
		return false, err
	}
	if err := write(file, content); err != nil {
		return false, err
	}
	return true, nil
}

// Account implements [System].
func (d *Directory) Account(_ context.Context, id string) (string, bool, error) {
	target, err := os.ReadFile(d.account(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(target), err == nil, err
}

// SetAccount implements [System].
func (d *Directory) SetAccount(_ context.Context, id, target string) error {
	return write(d.account(id), []byte(target))
}

// DeleteAccount implements [System].
func (d *Directory) DeleteAccount(_ context.Context, id string) error {
	if err := os.Remove(d.account(id)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *Directory) account(id string) string {
	return filepath.Join(d.path, "accounts", filepath.Base(id))
}

// write replaces a file. The rename is atomic: a file is complete even if the process is killed.
func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(file), ".draft-*")
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.Write(content)
	if err := errors.Join(err, draft.Close()); err != nil {
		return err
	}
	return os.Rename(draft.Name(), file)
}
