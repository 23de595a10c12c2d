// netfs: whether a directory lies on a network file system, where SQLite's locks and shared memory cannot be
// relied on. FUSE has one magic number for local and remote ones alike, so there the type of the mount
// decides, against a list of those that are remote.
#include "store/store_int.h"
#include <deputy/buf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { MAGIC_FUSE = 0x65735546, MOUNTINFO_MAX = 4 << 20 };

static const struct {
    uint64_t magic;
    const char *name;
} remote_magics[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},        {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB"},    {0x01021997, "9p"},     {0x5346414F, "AFS"},
    {0x6B414653, "AFS"},    {0x00C36400, "Ceph"},   {0x73757245, "Coda"},
    {0x564C, "NCP"},        {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"}, {0xAAD7AAEA, "PanFS"},  {0x01161970, "GFS2"},
    {0x7461636F, "OCFS2"},  {0x786F4256, "vboxsf"}, {0xBACBACBC, "VMware hgfs"},
};

static const char *const remote_fuse[] = {
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.glusterfs",
    "fuse.davfs",
    "fuse.davfs2",
    "fuse.ceph",
    "fuse.ceph-fuse",
    "fuse.gcsfuse",
    "fuse.goofys",
    "fuse.curlftpfs",
    "fuse.smbnetfs",
    "fuse.gvfsd-fuse",
    "fuse.blobfuse",
    "fuse.blobfuse2",
    "fuse.juicefs",
    "fuse.JuiceFS",
    "fuse.moosefs",
    "fuse.mfs",
    "fuse.lizardfs",
    "fuse.seaweedfs",
    "fuse.mount-s3",
    "fuse.google-drive-ocamlfuse",
    "fuse.onedriver",
    "fuse.afpfs",
    "fuse.vmhgfs-fuse",
    "fuse.grpcfuse",
    "fuse.fakeowner",
};

const char *netfs_name(uint64_t magic, str type) {
    for (size_t i = 0; i < sizeof remote_magics / sizeof *remote_magics; i++)
        if (remote_magics[i].magic == magic) return remote_magics[i].name;
    if (magic != MAGIC_FUSE) return NULL;
    for (size_t i = 0; i < sizeof remote_fuse / sizeof *remote_fuse; i++)
        if (str_eq(type, str_z(remote_fuse[i]))) return remote_fuse[i];
    return NULL;
}

// A line: `36 35 98:0 /root /mount rw,noatime master:1 - ext3 /dev/root rw`.
str netfs_mount_type(str mountinfo, unsigned major, unsigned minor) {
    char wanted[32];
    int n = snprintf(wanted, sizeof wanted, "%u:%u", major, minor);
    str found = {0}, line;
    while (mountinfo.n) {
        str_cut(mountinfo, '\n', &line, &mountinfo);
        str field = {0}, rest = line;
        for (int i = 0; i < 3; i++) str_cut(rest, ' ', &field, &rest);
        size_t dash = str_find(rest, S(" - "));
        if (!str_eq(field, (str){wanted, (size_t)n}) || dash == SIZE_MAX) continue;
        str_cut(str_sub(rest, dash + 3, rest.n), ' ', &found, &rest);
    }
    return found;
}

static str read_mountinfo(arena *a) {
    buf out = buf_new(a, MOUNTINFO_MAX);
    int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return (str){0};
    char piece[4096];
    for (ssize_t n; (n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR);)
        if (n > 0) buf_add(&out, (str){piece, (size_t)n});
    close(fd);
    return buf_str(&out);
}

dep_status netfs_refuse(arena *a, int dir, str path, dep_err *err) {
    struct statfs fs;
    struct stat st;
    if (fstatfs(dir, &fs) != 0 || fstat(dir, &st) != 0)
        return err_os(err, errno, "cannot examine " STR_FMT, STR_ARG(path));
    uint64_t magic = (uint64_t)fs.f_type & 0xFFFFFFFFu;
    str type = magic == MAGIC_FUSE ? netfs_mount_type(read_mountinfo(a), major(st.st_dev), minor(st.st_dev))
                                   : (str){0};
    const char *name = netfs_name(magic, type);
    if (!name) return DEP_OK;
    return err_set(err, DEP_ERR_REFUSED,
                   STR_FMT " is on a network file system (%s), where a database can be damaged; set "
                           "XDG_STATE_HOME to a local directory",
                   STR_ARG(path), name);
}
