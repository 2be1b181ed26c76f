/*
 * A headless OpenGL context, through EGL and libepoxy.
 *
 * Problem: the machine may have a GPU with the maker's driver, one of Mesa's, several, or none;
 * there is no display server, and the libraries themselves may be missing. The daemon should use a
 * GPU where there is one, allow to select it, and report the reason when there is none.
 *
 * Approach: EGL's device platform (EGL_EXT_device_enumeration, EGL_EXT_platform_device) lists
 * devices of all vendors; those that are not software make the list that --gpu counts. A device
 * whose renderer turns out to be Mesa's CPU one is not hardware. Software is the device with
 * EGL_MESA_device_software; older Mesa has none, there it is the surfaceless platform.
 * Nothing is drawn, so there is no surface and no config (EGL_KHR_surfaceless_context,
 * EGL_KHR_no_config_context).
 *
 * libepoxy ends the process when a library or a function that is called is not there. So the
 * libraries are opened here first, and the few EGL functions that may be missing are looked up by
 * extension.
 *
 * Robustness: the context is requested with harmless access out of bounds and notification of
 * resets (EGL 1.5, KHR_robustness); where the driver refuses that, a plain one is used and logged.
 *
 * A display, once initialised, stays so until the process ends: EGL returns the same one again, and
 * a new context is made on it.
 *
 * Tried and dropped: eglTerminate, which unloads Mesa's driver and leaks 128 bytes each time;
 * setting LIBGL_ALWAYS_SOFTWARE, which also hides hardware from a later attempt;
 * eglGetDisplay(EGL_DEFAULT_DISPLAY), which depends on DISPLAY.
 */
#include "sand/engine_gl/context.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <epoxy/egl.h>
#include <epoxy/gl.h>

#include "base/check.h"
#include "base/log.h"

enum { DEVICES_MAX = 64, SOFTWARE_THREADS_MAX = 8, MESSAGES_LOGGED_MAX = 100 };

struct context {
    EGLDisplay display;
    EGLContext egl;
    char word[16];
    unsigned options;
    bool lost;
    uint32_t rebuilds;
    uint32_t errors, messages;
    struct context_info info;
    void *kept;                  /* malloc; as long as `egl` */
    const atomic_bool *gives_up; /* of another owner; NULL: never */
};

/* ---- words ---------------------------------------------------------------------------------- */

/* The number that a word is, -1 when it is none. */
static int word_index(const char *word)
{
    int value = 0;

    if (!*word || strlen(word) > 2)
        return -1;
    for (; *word; word++) {
        if (!isdigit((unsigned char)*word))
            return -1;
        value = value * 10 + (*word - '0');
    }
    return value < DEVICES_MAX ? value : -1;
}

bool context_word_ok(const char *word)
{
    return !strcmp(word, "auto") || !strcmp(word, "software") || !strcmp(word, "off") ||
           word_index(word) >= 0;
}

void context_prepare(void)
{
    long threads = sysconf(_SC_NPROCESSORS_ONLN) / 2;
    char text[16];

    if (threads < 2) /* one would compute while the caller waits: the caller can do that itself */
        threads = 0;
    else if (threads > SOFTWARE_THREADS_MAX)
        threads = SOFTWARE_THREADS_MAX;
    snprintf(text, sizeof text, "%ld", threads);
    setenv("LP_NUM_THREADS", text, 0);
}

/* ---- libraries ------------------------------------------------------------------------------ */

/*
 * May memory that was written become code? Drivers compile shaders so. Where a sandbox refuses it
 * (MemoryDenyWriteExecute, PR_SET_MDWE) llvmpipe does not notice, and the first patch ends the
 * process.
 */
static enum err_code memory_check(struct err *err)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool is_allowed = page != MAP_FAILED && mprotect(page, bytes, PROT_READ | PROT_EXEC) == 0;

    if (page != MAP_FAILED)
        munmap(page, bytes);
    return is_allowed ? ERR_OK
                      : err_set(err, ERR_BUSY,
                                "this process may not make memory executable "
                                "(MemoryDenyWriteExecute), which OpenGL needs");
}

static enum err_code libraries_open(struct err *err)
{
    /* They stay open: drivers do not like to be unloaded. */
    if (!dlopen("libEGL.so.1", RTLD_LAZY | RTLD_LOCAL))
        return err_set(err, ERR_BUSY, "no OpenGL: libEGL.so.1 cannot be loaded");
    if (!dlopen("libOpenGL.so.0", RTLD_LAZY | RTLD_LOCAL) &&
        !dlopen("libGL.so.1", RTLD_LAZY | RTLD_LOCAL))
        return err_set(err, ERR_BUSY,
                       "no OpenGL: neither libOpenGL.so.0 nor libGL.so.1 can be loaded");
    return ERR_OK;
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; at && (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* ---- one context on one display ------------------------------------------------------------- */

static void on_message(GLenum source, GLenum type, GLuint id, GLenum severity, GLsizei length,
                       const GLchar *text, const void *user)
{
    struct context *context = (struct context *)user;

    (void)length;
    if (source == GL_DEBUG_SOURCE_SHADER_COMPILER) /* gl_program.c reports what matters */
        return;
    if (type == GL_DEBUG_TYPE_ERROR)
        context->errors++;
    if (type != GL_DEBUG_TYPE_ERROR && severity != GL_DEBUG_SEVERITY_HIGH)
        return;
    if (context->messages++ < MESSAGES_LOGGED_MAX)
        log_warn("OpenGL says (%u): %s", id, text);
}

static void info_read(struct context_info *info)
{
    const char *threads = getenv("LP_NUM_THREADS");
    GLint64 bytes = 0;

    snprintf(info->vendor, sizeof info->vendor, "%s", (const char *)glGetString(GL_VENDOR));
    snprintf(info->renderer, sizeof info->renderer, "%s", (const char *)glGetString(GL_RENDERER));
    snprintf(info->version, sizeof info->version, "%s", (const char *)glGetString(GL_VERSION));
    glGetIntegerv(GL_MAJOR_VERSION, &info->major);
    glGetIntegerv(GL_MINOR_VERSION, &info->minor);
    glGetIntegerv(GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS, &info->storage_blocks);
    glGetInteger64v(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &bytes);
    info->storage_block_bytes = bytes;
    glGetIntegerv(GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS, &info->group_invocations);
    glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_COUNT, 0, &info->group_count);
    glGetIntegerv(GL_MAX_COMPUTE_SHARED_MEMORY_SIZE, &info->shared_bytes);
    info->software = strstr(info->renderer, "llvmpipe") || strstr(info->renderer, "softpipe") ||
                     strstr(info->renderer, "swrast");
    info->threads = info->software && threads ? atoi(threads) : 0;
}

static EGLContext egl_context_make(EGLDisplay display, bool robust, unsigned options)
{
    EGLint list[] = {EGL_CONTEXT_MAJOR_VERSION,
                     4,
                     EGL_CONTEXT_MINOR_VERSION,
                     3,
                     EGL_CONTEXT_OPENGL_PROFILE_MASK,
                     EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                     EGL_CONTEXT_OPENGL_DEBUG,
                     options & CONTEXT_DEBUG ? EGL_TRUE : EGL_FALSE,
                     robust ? EGL_CONTEXT_OPENGL_ROBUST_ACCESS : EGL_NONE,
                     options & CONTEXT_PLAIN ? EGL_FALSE : EGL_TRUE,
                     EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY,
                     EGL_LOSE_CONTEXT_ON_RESET,
                     EGL_NONE};

    return eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, list);
}

static void egl_close(struct context *context)
{
    if (context->display == EGL_NO_DISPLAY)
        return;
    eglMakeCurrent(context->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    if (context->egl != EGL_NO_CONTEXT)
        eglDestroyContext(context->display, context->egl);
    context->egl = EGL_NO_CONTEXT;
    context->display = EGL_NO_DISPLAY;
    eglReleaseThread();
    free(context->kept);
    context->kept = NULL;
}

/* Makes a context on `display` and fills info; why not goes to `why`. */
static bool egl_open(struct context *context, EGLDisplay display, char *why, size_t why_bytes)
{
    EGLint major, minor;

    if (display == EGL_NO_DISPLAY || !eglInitialize(display, &major, &minor)) {
        snprintf(why, why_bytes, "EGL cannot be initialised (error 0x%x)", (unsigned)eglGetError());
        return false;
    }
    context->display = display;
    if (major * 10 + minor < 15 || !eglBindAPI(EGL_OPENGL_API) ||
        !has_word(eglQueryString(display, EGL_EXTENSIONS), "EGL_KHR_surfaceless_context")) {
        snprintf(why, why_bytes, "EGL %d.%d without OpenGL or surfaceless contexts", major, minor);
        goto fail;
    }
    context->egl = egl_context_make(display, true, context->options);
    context->info.robust = context->egl != EGL_NO_CONTEXT;
    if (context->egl == EGL_NO_CONTEXT)
        context->egl = egl_context_make(display, false, context->options);
    if (context->egl == EGL_NO_CONTEXT) {
        snprintf(why, why_bytes, "no OpenGL 4.3 core context (error 0x%x)",
                 (unsigned)eglGetError());
        goto fail;
    }
    if (!eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context->egl)) {
        snprintf(why, why_bytes, "the context cannot be made current (error 0x%x)",
                 (unsigned)eglGetError());
        goto fail;
    }
    info_read(&context->info);
    glEnable(GL_DEBUG_OUTPUT);
    if (context->options & CONTEXT_DEBUG)
        glEnable(GL_DEBUG_OUTPUT_SYNCHRONOUS);
    glDebugMessageCallback(on_message, context);
    return true;

fail:
    egl_close(context);
    return false;
}

/* ---- choosing a device ---------------------------------------------------------------------- */

static bool device_is_software(EGLDeviceEXT device)
{
    return has_word(eglQueryDeviceStringEXT(device, EGL_EXTENSIONS), "EGL_MESA_device_software");
}

static int devices_list(const char *client_extensions, EGLDeviceEXT devices[DEVICES_MAX])
{
    EGLint count = 0;

    if (!has_word(client_extensions, "EGL_EXT_platform_device") ||
        !(has_word(client_extensions, "EGL_EXT_device_base") ||
          (has_word(client_extensions, "EGL_EXT_device_enumeration") &&
           has_word(client_extensions, "EGL_EXT_device_query"))))
        return 0;
    return eglQueryDevicesEXT(DEVICES_MAX, devices, &count) ? count : 0;
}

/* The first hardware device, or the one of index `wanted` when that is not negative. */
static bool hardware_open(struct context *context, int wanted, const EGLDeviceEXT *devices,
                          int count, char *why, size_t why_bytes)
{
    int index = -1;

    snprintf(why, why_bytes, "no hardware device");
    for (int i = 0; i < count; i++) {
        if (device_is_software(devices[i]))
            continue;
        index++;
        if (wanted >= 0 && index != wanted)
            continue;
        if (!egl_open(context, eglGetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, devices[i], NULL),
                      why, why_bytes))
            continue;
        context->info.device = index;
        snprintf(context->info.platform, sizeof context->info.platform, "device");
        if (!context->info.software)
            return true;
        snprintf(why, why_bytes, "device %d is rendered by the CPU", index);
        egl_close(context);
    }
    if (wanted > index)
        snprintf(why, why_bytes, "device %d of %d hardware devices", wanted, index + 1);
    return false;
}

static bool software_open(struct context *context, const char *client_extensions,
                          const EGLDeviceEXT *devices, int count, char *why, size_t why_bytes)
{
    const char *platform = "device";
    EGLDisplay display = EGL_NO_DISPLAY;

    for (int i = 0; i < count && display == EGL_NO_DISPLAY; i++)
        if (device_is_software(devices[i]))
            display = eglGetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, devices[i], NULL);
    if (display == EGL_NO_DISPLAY && has_word(client_extensions, "EGL_MESA_platform_surfaceless")) {
        platform = "surfaceless";
        display =
            eglGetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    }
    if (display == EGL_NO_DISPLAY) {
        snprintf(why, why_bytes, "no software renderer (Mesa's llvmpipe) is installed");
        return false;
    }
    if (!egl_open(context, display, why, why_bytes))
        return false;
    if (!context->info.software) {
        snprintf(why, why_bytes, "%.60s is no software renderer", context->info.renderer);
        egl_close(context);
        return false;
    }
    context->info.device = -1;
    snprintf(context->info.platform, sizeof context->info.platform, "%s", platform);
    return true;
}

static enum err_code context_open(struct context *context, struct err *err)
{
    EGLDeviceEXT devices[DEVICES_MAX];
    const char *extensions;
    char hard[128] = "", soft[128] = "";
    int count;

    memset(&context->info, 0, sizeof context->info);
    context->errors = 0;
    if (!strcmp(context->word, "off"))
        return err_set(err, ERR_BUSY, "no OpenGL: it is switched off (--gpu off)");
    if (memory_check(err) || libraries_open(err))
        return err->code;
    extensions = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
    if (!has_word(extensions, "EGL_EXT_platform_base"))
        return err_set(err, ERR_BUSY, "no OpenGL: EGL knows no platforms without a display");
    count = devices_list(extensions, devices);
    if (strcmp(context->word, "software") &&
        hardware_open(context, word_index(context->word), devices, count, hard, sizeof hard))
        return ERR_OK;
    if (!strcmp(context->word, "software") &&
        software_open(context, extensions, devices, count, soft, sizeof soft))
        return ERR_OK;
    return err_set(err, ERR_BUSY, "no OpenGL 4.3 for --gpu %s: %s", context->word,
                   strcmp(context->word, "software") ? hard : soft);
}

/* ---- life ----------------------------------------------------------------------------------- */

struct context *context_create(const char *word, unsigned options, struct err *err)
{
    struct context *context;

    if (!context_word_ok(word)) {
        err_set(err, ERR_BAD_INPUT, "gpu: '%.20s' is none of auto, software, off, 0..%d", word,
                DEVICES_MAX - 1);
        return NULL;
    }
    context = calloc(1, sizeof *context);
    if (!context) {
        err_set(err, ERR_NO_MEMORY, "no memory for an OpenGL context");
        return NULL;
    }
    context->options = options;
    context->display = EGL_NO_DISPLAY;
    context->egl = EGL_NO_CONTEXT;
    snprintf(context->word, sizeof context->word, "%s", word);
    if (context_open(context, err)) {
        free(context);
        return NULL;
    }
    log_info("OpenGL %d.%d on %s, %s%s", context->info.major, context->info.minor,
             context->info.renderer, context->info.platform,
             context->info.robust && !(context->options & CONTEXT_PLAIN) ? ", robust" : "");
    return context;
}

void context_destroy(struct context *context)
{
    if (!context)
        return;
    egl_close(context);
    free(context);
}

const struct context_info *context_info(const struct context *context)
{
    return &context->info;
}

void *context_kept(const struct context *context)
{
    return context->kept;
}

void context_keep(struct context *context, void *kept)
{
    CHECK(!context->kept);
    context->kept = kept;
}

void context_set_gives_up(struct context *context, const atomic_bool *gives_up)
{
    context->gives_up = gives_up;
}

bool context_gives_up(const struct context *context, struct err *err)
{
    if (!context->gives_up || !atomic_load(context->gives_up))
        return false;
    err_set(err, ERR_BUSY, "the daemon stops");
    return true;
}

bool context_lost(struct context *context)
{
    /* Core since OpenGL 4.5; before that an extension that need not be there. */
    if (!context->lost && context->info.robust && context->egl != EGL_NO_CONTEXT) {
        if (context->info.major * 10 + context->info.minor >= 45)
            context->lost = glGetGraphicsResetStatus() != GL_NO_ERROR;
        else if (epoxy_has_gl_extension("GL_ARB_robustness"))
            context->lost = glGetGraphicsResetStatusARB() != GL_NO_ERROR;
    }
    return context->lost;
}

enum err_code context_rebuild(struct context *context, struct err *err)
{
    egl_close(context);
    context->lost = true;
    if (context_open(context, err))
        return err->code;
    context->lost = false;
    context->rebuilds++;
    log_warn("sand: the OpenGL context was lost and is made again on %s", context->info.renderer);
    return ERR_OK;
}

uint32_t context_rebuilds(const struct context *context)
{
    return context->rebuilds;
}

uint32_t context_errors(const struct context *context)
{
    return context->errors;
}

void context_pretend_loss(struct context *context)
{
    context->lost = true;
}
